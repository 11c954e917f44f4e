/**
 * `npm run cost` first gives all kinds of text to all readers, in this process: exits 1 when four times the text costs
 * more than six times the CPU time, or one text delays requests for more than 20 ms. Then it sends the most expensive
 * requests and answers within the default limits through a real process, and measures how long all others wait: the longest
 * tick of its event loop, the least of several runs. Exits 1 when one is longer than 20 ms, or 60 ms on a busy machine.
 */
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { readArguments } from '../../../scripts/arguments.ts';
import { writeResult } from '../../../scripts/results.ts';

readArguments({
  name: 'npm run cost',
  about:
    'Measures how long the most expensive requests delay all others; exits with 1 when that is too long.',
});

// Loaded after the arguments are read, since `--help` needs none of them.
const { startShopward } = await import('../../harness/shopward.ts');
const { costliestExchanges } = await import('./costliest.ts');
const { KeptConnection, openShop, openStage } = await import('./stage.ts');
const { findCosts } = await import('./growth.ts');
const { documentReaders } = await import('./document-readers.ts');
const { pureReaders } = await import('./pure-readers.ts');
const { socketReaders } = await import('./socket-readers.ts');

/** Limits on an idle machine, and on a busy one, where even an idle process has long ticks. */
const targetMs = { idle: 20, noisy: 60 };
const repetitions = 5;
const probe = pathToFileURL(path.join(import.meta.dirname, 'probe.ts')).href;

const stage = await openStage();
const growing: string[] = [];
for (const reader of [...pureReaders, ...documentReaders, ...socketReaders(stage)]) {
  growing.push(...(await findCosts(reader)));
}
await stage.close();
for (const fault of growing) console.log(fault);

const shop = await openShop();
const shopward = await startShopward({
  upstream: `http://127.0.0.1:${shop.port}`,
  env: { NODE_OPTIONS: `--import ${probe}` },
});
let seq = 0;

/** On a new connection. */
async function exchange(octets: string | Buffer): Promise<void> {
  const connection = new KeptConnection(shopward.port);
  await connection.send(octets);
  connection.close();
}

/** The longest tick since the last call. */
async function longestTickMs(): Promise<number> {
  const wanted = ++seq;
  shopward.signal('SIGUSR2');
  const line = await shopward.waitForLog((one) => one.event === 'longest-tick' && one.seq === wanted);
  return Number(line.ms);
}

async function leastOf(run: () => Promise<unknown>): Promise<number> {
  let least = Infinity;
  for (let i = 0; i < repetitions; i++) {
    await longestTickMs();
    await run();
    // Work after the answer counts too.
    await sleep(50);
    least = Math.min(least, await longestTickMs());
  }
  return least;
}

const idleMs = await leastOf(() => sleep(100));
interface Cost {
  readonly name: string;
  readonly ms: number;
}
const costs: Cost[] = [];
for (const { name, octets, answer } of costliestExchanges(
  `Authorization: Bearer ${shopward.issueToken()}\r\n`,
)) {
  shop.answerWith(answer);
  const ms = await leastOf(() => exchange(octets));
  costs.push({ name, ms });
}
costs.push(...(await costsOfLists()));
await shopward.kill();
shop.close();

costs.sort((one, other) => other.ms - one.ms);
console.log(`an idle process: ${idleMs.toFixed(1)} ms\n\nothers wait, ms | for`);
for (const { name, ms } of costs) console.log(`${ms.toFixed(1).padStart(15)} | ${name}`);
const tooDear = costs.filter(({ ms }) => ms > (idleMs < 1 ? targetMs.idle : targetMs.noisy));
const [worst] = costs;
writeResult('cost', {
  title: 'How long one request delays all others',
  command: 'npm run cost',
  promises: [
    {
      promise: `cost: at most ${targetMs.idle} ms on an idle machine, ${targetMs.noisy} ms on a busy one`,
      measured: `${worst?.ms.toFixed(1)} ms: ${worst?.name}`,
      isMet: tooDear.length === 0,
    },
    {
      promise: 'cost: four times the text costs at most six times the CPU',
      measured: growing[0] ?? 'all readers',
      isMet: growing.length === 0,
    },
  ],
  figures: [['an idle process', `${idleMs.toFixed(1)} ms`]],
  details: costs,
});
if (tooDear.length + growing.length > 0) process.exitCode = 1;

/** Measures an edit of a long list while the process serves, and requests that read such a list. */
async function costsOfLists(): Promise<Cost[]> {
  const found: Cost[] = [];
  let edits = 0;
  for (const rows of [10_000, 60_000]) {
    const edit = async () => {
      const mark = ++edits;
      const lines = Array.from(
        { length: rows },
        (_, i) => `    - GET /shop-${i % 700}/items-${i}-${mark}/{id}`,
      );
      await writeFile(shopward.listFile, `groups:\n  A:\n${lines.join('\n')}\ncomplete: true\n`);
      const count = () => shopward.log().filter(({ event }) => event === 'list-reloaded').length;
      await shopward.waitForLog(() => count() >= mark);
    };
    found.push({ name: `an edit of a list of ${rows} rows`, ms: await leastOf(edit) });
  }
  for (const location of ['/metrics', '/api/state', '/api/rows?q=items-59999&order=met', '/api/rollout']) {
    const ask = () => fetch(`${shopward.adminUrl}${location}`).then((reply) => reply.text());
    found.push({ name: `${location} of 60000 rows`, ms: await leastOf(ask) });
  }
  const document = () => exchange('GET /protected-resources HTTP/1.1\r\nHost: shop.example\r\n\r\n');
  found.push({ name: 'GET /protected-resources of 60000 rows', ms: await leastOf(document) });
  return found;
}
