import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { type JwksServer, serveJson, startJwksServer } from '../access/jwks-server.ts';
import { makeSigner, type Signer } from '../access/signing.ts';
import { issueToken, type Shopward, startShopward } from '../harness/shopward.ts';
import { ask } from './ask.ts';
import { checkScene, type Scene } from './scene.ts';
import { type FaultShop, startFaultShop } from './shop.ts';

const columns = [
  'open GET',
  'token of a known key',
  'token of a new key',
  'forged token',
  'no token',
] as const;
const unavailable = '503 keys-unavailable';
const usual = {
  'open GET': '200',
  'token of a known key': '200',
  'forged token': '401 001',
  'no token': '401 002',
} as const;

interface Stage {
  readonly server: JwksServer;
  readonly shopward: Shopward;
  /** In the key set from the start, and not in it. */
  readonly known: Signer;
  readonly fresh: Signer;
}

/** The source of verification keys breaks in every way. Each scene has a process of its own, because fetches have a cooldown. */
export async function runKeyFaults(): Promise<Scene[]> {
  const shop = await startFaultShop();
  const plays = [
    inStage(shop, 'down at the start, then up', async (stage) => {
      const { server, known } = stage;
      server.goDown();
      await stage.start();
      const seen = await askAll(stage);
      server.serve(known);
      const after = await eventually(stage, known);
      return checkScene(
        'down at the start, then up',
        { ...seen, after },
        {
          'open GET': '200',
          'token of a known key': unavailable,
          'token of a new key': unavailable,
          // Without keys nobody can say so.
          'forged token': unavailable,
          'no token': '401 002',
          after: '200',
        },
      );
    }),
    inStage(shop, 'down later', async (stage) => {
      await stage.start();
      stage.server.goDown();
      const seen = await askAll(stage);
      return checkScene(
        'down later',
        { ...seen, after: await words(stage, stage.known) },
        {
          ...usual,
          'token of a new key': unavailable,
          after: '200',
        },
      );
    }),
    inStage(shop, 'slow', async (stage) => {
      await stage.start();
      const release = stage.server.hold(stage.known, stage.fresh);
      setTimeout(release, 700);
      const seen = await askAll(stage);
      return checkScene(
        'slow',
        { ...seen, after: await words(stage, stage.fresh) },
        {
          ...usual,
          'token of a new key': '200',
          after: '200',
        },
      );
    }),
    inStage(shop, 'slower than its time-out', async (stage) => {
      await stage.start();
      stage.server.answer(() => {});
      const seen = await askAll(stage);
      stage.server.serve(stage.known, stage.fresh);
      stage.get().signal('SIGHUP');
      return checkScene(
        'slower than its time-out',
        { ...seen, after: await eventually(stage, stage.fresh) },
        { ...usual, 'token of a new key': unavailable, after: '200' },
      );
    }),
    ...(
      [
        ['HTML', serveJson('<html>Welcome</html>')],
        ['an empty set', serveJson({ keys: [] })],
        ['half a document', serveJson('{"keys":[{"kty":"RSA","n":"')],
        [
          'nonsense for keys',
          serveJson({ keys: [{ kty: 'oct', k: 'AAAA' }, 7, null, { kty: 'RSA', n: 'AQ', e: 'AQAB' }] }),
        ],
        ['a redirect', (response) => response.writeHead(302, { Location: '/jwks.json?again' }).end()],
        ['octets without end', sendForever],
      ] as const satisfies readonly (readonly [string, (response: ServerResponse) => void])[]
    ).map(([what, respond]) =>
      inStage(shop, `sends ${what}`, async (stage) => {
        await stage.start();
        stage.server.answer(respond);
        const hit = stage.server.nextHit();
        stage.get().signal('SIGHUP');
        await hit;
        await sleep(100);
        const seen = await askAll(stage);
        stage.server.serve(stage.known, stage.fresh);
        stage.get().signal('SIGHUP');
        const after = await eventually(stage, stage.fresh);
        return checkScene(
          `sends ${what}`,
          { ...seen, after },
          {
            ...usual,
            'token of a new key': unavailable,
            after: '200',
          },
        );
      }),
    ),
    inStage(shop, 'rotated: the old key is gone', async (stage) => {
      await stage.start();
      stage.server.serve(stage.fresh);
      const first = await words(stage, stage.fresh);
      const seen = { ...(await askAll(stage)), after: first };
      return checkScene('rotated: the old key is gone', seen, {
        ...usual,
        'token of a known key': '401 001',
        'token of a new key': '200',
        after: '200',
      });
    }),
  ];
  const scenes: Scene[] = [];
  // One after the other: a machine that is busy must not start eight processes at once.
  for (const play of plays) scenes.push(await play());
  shop.close();
  return scenes;
}

function sendForever(response: ServerResponse): void {
  const send = () => {
    while (!response.destroyed && response.write(' '.repeat(16_384)));
  };
  response.on('drain', send);
  send();
}

type Starting = Omit<Stage, 'shopward'> & { start(): Promise<void>; get(): Shopward };

function inStage(shop: FaultShop, name: string, play: (stage: Starting) => Promise<Scene>) {
  return () => playScene(shop, name, play);
}

async function playScene(
  shop: FaultShop,
  name: string,
  play: (stage: Starting) => Promise<Scene>,
): Promise<Scene> {
  const [known, fresh] = [makeSigner('RS256', 'known'), makeSigner('RS256', 'fresh')];
  const server = await startJwksServer(known);
  let shopward: Shopward | undefined;
  const get = () => {
    if (shopward === undefined) throw new Error(`${name}: not started`);
    return shopward;
  };
  const start = async () => {
    const config = { auth: { keys: { jwks: server.url } }, log: { level: 'warn' } };
    shopward = await startShopward({ upstream: `http://127.0.0.1:${shop.port}`, config });
  };
  const scene = await play({ server, known, fresh, start, get });
  const ended = get().exitCode === null ? [] : [`${name}: shopward ended`];
  await get().stop();
  await server.close();
  return { ...scene, wrongs: [...scene.wrongs, ...ended] };
}

async function askAll(stage: Starting): Promise<Record<string, string>> {
  const forged = { ...makeSigner('RS256', 'known') };
  const all = await Promise.all([
    ask(stage.get().port, { method: 'GET', path: '/stores/1' }).then((seen) => seen.words),
    words(stage, stage.known),
    words(stage, stage.fresh),
    words(stage, forged),
    ask(stage.get().port, { method: 'GET', path: '/customers/1' }).then((seen) => seen.words),
  ]);
  return Object.fromEntries(columns.map((column, i) => [column, all[i] ?? '']));
}

async function words(stage: Starting, signer: Signer): Promise<string> {
  const fields = { Authorization: `Bearer ${issueToken(signer)}` };
  return (await ask(stage.get().port, { method: 'GET', path: '/customers/1', fields })).words;
}

async function eventually(stage: Starting, signer: Signer): Promise<string> {
  const deadline = performance.now() + 60_000;
  for (;;) {
    const seen = await words(stage, signer);
    if (seen === '200' || performance.now() > deadline) return seen;
    await sleep(100);
  }
}
