import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { issueToken } from '../../harness/shopward.ts';
import { type ShopwardHere, startShopwardHere } from '../../harness/shopward-here.ts';
import { type JwksServer, serveJson, startJwksServer } from '../../unit/access/jwks-server.ts';
import { makeSigner, type Signer } from '../../unit/access/signing.ts';
import { ask } from './ask.ts';
import { checkScene, type Scene } from './scene.ts';
import { type OutageShop, startOutageShop } from './shop.ts';

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
  after: '200',
} as const;

/** Signers of all scenes. */
interface Signers {
  /** `known` is in the key set from the start, `fresh` is not. */
  readonly known: Signer;
  readonly fresh: Signer;
  /** Another key with the key id of `known`. */
  readonly forged: Signer;
}

interface Stage extends Signers {
  readonly server: JwksServer;
  start(): Promise<void>;
  get(): ShopwardHere;
}

/** Faults of the key source. Each scene has its own proxy, because fetches have a cooldown. */
export async function runKeyFaults(): Promise<Scene[]> {
  const shop = await startOutageShop();
  const signers: Signers = {
    known: makeSigner('RS256', 'known'),
    fresh: makeSigner('RS256', 'fresh'),
    forged: makeSigner('RS256', 'known'),
  };
  const inStage = (name: string, play: Play) => playScene(shop, signers, name, play);
  const plays = [
    inStage('down at the start, then up', async (stage) => {
      stage.server.goDown();
      await stage.start();
      const seen = await askAll(stage);
      stage.server.serve(stage.known);
      // Without keys a forged token cannot be told from a valid one.
      const without = {
        'token of a known key': unavailable,
        'token of a new key': unavailable,
        'forged token': unavailable,
      };
      return [{ ...seen, after: await eventually(stage, stage.known) }, without];
    }),
    inStage('down later', async (stage) => {
      await stage.start();
      stage.server.goDown();
      const seen = await askAll(stage);
      return [{ ...seen, after: await words(stage, stage.known) }, { 'token of a new key': unavailable }];
    }),
    inStage('slow', async (stage) => {
      await stage.start();
      const release = stage.server.delay(stage.known, stage.fresh);
      setTimeout(release, 700);
      const seen = await askAll(stage);
      return [{ ...seen, after: await words(stage, stage.fresh) }, { 'token of a new key': '200' }];
    }),
    inStage('slower than its time-out', async (stage) => {
      await stage.start();
      stage.server.answer(() => {});
      return askAndRecover(stage);
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
      inStage(`sends ${what}`, async (stage) => {
        await stage.start();
        stage.server.answer(respond);
        const hit = stage.server.nextHit();
        await stage.get().reload();
        await hit;
        await sleep(100);
        return askAndRecover(stage);
      }),
    ),
    inStage('rotated: the old key is gone', async (stage) => {
      await stage.start();
      stage.server.serve(stage.fresh);
      const after = await words(stage, stage.fresh);
      return [
        { ...(await askAll(stage)), after },
        { 'token of a known key': '401 001', 'token of a new key': '200' },
      ];
    }),
  ];
  const scenes = await Promise.all(plays);
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

/** Resolves to what was seen, and to the answers that differ from `usual`. */
type Play = (stage: Stage) => Promise<readonly [seen: Scene['seen'], allowed: Scene['seen']]>;

/** Asks while no new key can be fetched, and once it can. */
async function askAndRecover(stage: Stage): ReturnType<Play> {
  const seen = await askAll(stage);
  stage.server.serve(stage.known, stage.fresh);
  await stage.get().reload();
  return [{ ...seen, after: await eventually(stage, stage.fresh) }, { 'token of a new key': unavailable }];
}

async function playScene(shop: OutageShop, signers: Signers, name: string, play: Play): Promise<Scene> {
  const server = await startJwksServer(signers.known);
  let shopward: ShopwardHere | undefined;
  const get = () => {
    if (shopward === undefined) throw new Error(`${name}: not started`);
    return shopward;
  };
  const start = async () => {
    const config = { auth: { keys: { jwks: server.url } }, log: { level: 'warn' } };
    shopward = await startShopwardHere({ upstream: `http://127.0.0.1:${shop.port}`, config });
  };
  const [seen, allowed] = await play({ ...signers, server, start, get });
  await get().stop();
  await server.close();
  return checkScene(name, seen, { ...usual, ...allowed });
}

async function askAll(stage: Stage): Promise<Record<string, string>> {
  const all = await Promise.all([
    ask(stage.get().port, { method: 'GET', path: '/stores/1' }).then((seen) => seen.words),
    words(stage, stage.known),
    words(stage, stage.fresh),
    words(stage, stage.forged),
    ask(stage.get().port, { method: 'GET', path: '/customers/1' }).then((seen) => seen.words),
  ]);
  return Object.fromEntries(columns.map((column, i) => [column, all[i] ?? '']));
}

async function words(stage: Stage, signer: Signer): Promise<string> {
  const fields = { Authorization: `Bearer ${issueToken(signer)}` };
  return (await ask(stage.get().port, { method: 'GET', path: '/customers/1', fields })).words;
}

async function eventually(stage: Stage, signer: Signer): Promise<string> {
  const deadline = performance.now() + 60_000;
  for (;;) {
    const seen = await words(stage, signer);
    if (seen === '200' || performance.now() > deadline) return seen;
    await sleep(100);
  }
}
