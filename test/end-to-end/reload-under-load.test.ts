import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { exchangeRaw } from '../harness/raw-client.ts';
import { answer, type RecordingUpstream, startRecordingUpstream } from '../harness/recording-upstream.ts';
import { listOf, type Shopward, startShopward } from '../harness/shopward.ts';
import { type LoadRequest, startSteadyLoad } from '../harness/steady-load.ts';
import { makeSigner, publicPem } from '../unit/access/signing.ts';

const edits = 200;
/**
 * The test waits only for the last edit of each burst. The number is odd, so that these edits take the ways in turn.
 */
const burst = 25;
/** More tokens than requests between two edits of the keys, because a cached token needs no key. */
const tokens = 64;
const fill = (name: string) => Array.from({ length: 40 }, (_, i) => `GET /${name}/${i}`);
/** The checked row is the last one, so that half a list would lack it. */
const lists = [listOf([...fill('odd'), 'GET /secret']), listOf([...fill('even'), 'GET /secret'])];

let upstream: RecordingUpstream;
let shopward: Shopward;
let folder: string;
let mappingFile: string;

/** All mappings of a file have one id, so that half a file or a mix of two is noticed. */
const mappings = (id: number) =>
  `url,entityType,entityId\n${Array.from({ length: 2000 }, (_, i) => `/en/p${i},abstract-products,${id}\n`).join('')}`;

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'shopward-mappings-'));
  mappingFile = path.join(folder, 'urls.csv');
  await writeFile(mappingFile, mappings(0));
  upstream = await startRecordingUpstream(() => answer());
  shopward = await startShopward({
    upstream: `http://127.0.0.1:${upstream.port}`,
    rows: ['GET /secret'],
    config: { log: { level: 'info' }, urlResolver: { source: mappingFile } },
  });
});
afterAll(async () => {
  await shopward?.kill();
  await upstream?.close();
  await rm(folder, { recursive: true });
});

/** The ways in which editors, scripts and mounts write a file. */
const waysToWrite: readonly ((file: string, text: string) => Promise<void>)[] = [
  (file, text) => writeFile(file, text),
  async (file, text) => {
    await writeFile(`${file}.new`, text);
    await rename(`${file}.new`, file);
  },
  async (file, text) => {
    await writeFile(file, text.slice(0, text.length / 2));
    await writeFile(file, text);
  },
  async (file, text) => {
    await rm(file);
    await writeFile(file, text);
  },
];

it('200 edits of the list, with edits of the keys and of the mapping file, under load: no request fails or sees half an edit', async () => {
  const withoutToken = { method: 'GET', path: '/secret', expected: 401 };
  const withToken = (jti: string) => {
    const headers = { Authorization: `Bearer ${shopward.issueToken({ jti })}` };
    return { ...withoutToken, headers, expected: 200 };
  };
  const others = ['/open', '/url-resolver?url=/en/p0', '/url-resolver?url=/en/p1999'].map((path) => {
    return { method: 'GET', path, expected: 200 };
  });
  // Without a list the first would pass; without keys the second would be refused.
  const requests: readonly (LoadRequest & { readonly expected: number })[] = Array.from(
    { length: tokens },
    (_, i) => [withoutToken, withToken(`${i}`), ...(i % 4 === 0 ? others : [])],
  ).flat();
  const wrong: string[] = [];
  const load = startSteadyLoad(
    shopward.port,
    6,
    (n) => requests[n % requests.length] as LoadRequest,
    (request, status) => {
      const { expected } = request as (typeof requests)[number];
      if (status !== expected) wrong.push(`${request.path}: ${status} instead of ${expected}`);
    },
  );
  const other = publicPem(makeSigner('RS256'));
  const good = publicPem(shopward.signer);
  const keyFile = path.join(shopward.folder, 'public.pem');
  const seen = { reloads: 0 };
  const keyReloads = () => shopward.log().filter(({ event }) => event === 'keys-reloaded').length;
  const refusals = () => shopward.log().filter(({ event }) => event === 'mapping-refused').length;
  // Another key is added and removed; the signing key stays.
  const editKeys = async () => {
    const before = keyReloads();
    await waysToWrite[1]?.(keyFile, before % 2 === 0 ? `${good}${other}` : good);
    await eventually('the edit of the keys', () => keyReloads() > before || undefined);
  };
  for (let edit = 1; edit <= edits; edit++) {
    const way = waysToWrite[edit % waysToWrite.length];
    const text = lists[(edit / burst) % 2 < 1 ? 0 : 1] ?? '';
    await way?.(shopward.listFile, `${text}# ${edit}\n`);
    if (edit % burst > 0) continue;
    // Every fifth mapping file has an error and is refused.
    const mapped = mappings(edit);
    if (edit % (5 * burst) === 0) {
      const before = refusals();
      await writeFile(mappingFile, `${mapped}/en/p1,nonsense,1\n`);
      await eventually('the refusal of the mapping file', () => refusals() > before || undefined);
    } else await waysToWrite[(edit / burst) % waysToWrite.length]?.(mappingFile, mapped);
    const isOdd = text.includes('/odd/');
    const inForce = eventually('the edit to be in force', async () => {
      const response = await exchangeRaw(
        shopward.port,
        `GET /${isOdd ? 'odd' : 'even'}/7 HTTP/1.1\r\nHost: x\r\n\r\n`,
      );
      return response.status === 401 || undefined;
    });
    // Two edits of the keys while the list is read, one once it is in force.
    await Promise.all([inForce, editKeys().then(editKeys)]);
    await editKeys();
    seen.reloads++;
  }
  await waysToWrite[1]?.(mappingFile, mappings(edits + 1));
  await eventually('the last mapping file', async () => {
    const path = '/url-resolver?url=/en/p1999';
    const response = await exchangeRaw(shopward.port, `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
    return response.body.toString().includes(`"${edits + 1}"`) || undefined;
  });
  await load.stop();
  expect(wrong).toEqual([]);
  expect(seen.reloads).toBe(edits / burst);
  const failures = shopward.log().filter(({ event }) => event === 'fault' || event === 'crash');
  expect(failures).toEqual([]);
  const reloads = shopward.log().filter(({ event }) => event === 'list-reloaded').length;
  const events = (name: string) => shopward.log().filter(({ event }) => event === name).length;
  process.stdout.write(
    `reload: ${edits} edits, ${reloads} of them took effect, ${keyReloads()} reloads of keys, ` +
      `${events('mapping-loaded')} of the mapping file (${refusals()} refused), ${load.total} requests, 0 failures\n`,
  );
}, 240_000);
