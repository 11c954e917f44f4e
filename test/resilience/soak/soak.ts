import { setTimeout as sleep } from 'node:timers/promises';
import { startFaultProxy } from '../../harness/fault-proxy.ts';
import { startRedis } from '../../harness/redis-processes.ts';
import { type Shopward, startShopward } from '../../harness/shopward.ts';
import { shopwardSettings } from '../faults/settings.ts';
import { startOutageShop } from '../faults/shop.ts';
import { createRandom } from '../hunt/random.ts';
import { disturb } from './disturbances.ts';
import { type Figures, readFigures, slopePerMinute, tryReadFigures } from './figures.ts';
import { type Met, visit } from './visitors.ts';

export interface SoakOptions {
  readonly visitors: number;
  /** Pause between two requests of a visitor. Default 0: full load. */
  readonly pauseMs?: number;
  /** Mean pause between two faults. Default 1500. */
  readonly restMs?: number;
  readonly seed: number;
  /** The run ends after this number of requests and faults … */
  readonly requests?: number;
  readonly disturbances?: number;
  /** … or after this time, whichever comes first. Default: only the time ends it. */
  readonly durationMs: number;
}

const sampleMs = 1_000;
/** The first third of a run. */
const warmUp = 1 / 3;

/** One process of the real proxy under mixed traffic, while everything around it breaks now and then. */
export async function runSoak(options: SoakOptions) {
  const { visitors, pauseMs = 0, restMs = 1_500, seed, durationMs } = options;
  const shop = await startOutageShop();
  const redis = await startRedis({});
  const upstream = await startFaultProxy(shop.port);
  const store = await startFaultProxy(redis.process?.port ?? 0);
  const shopward = await startShopward({
    upstream: `http://127.0.0.1:${upstream.port}`,
    config: {
      ...shopwardSettings(`redis://127.0.0.1:${store.port}`, { timeout: '400ms' }),
      upstream: { responseTimeout: '1500ms', connectTimeout: '1500ms' },
      entityTags: { lease: '3s', sendBy: '1s', wait: '500ms' },
      log: { level: 'error' },
    },
  });
  const random = createRandom(seed);
  const met: Met = {};
  const startedMs = performance.now();
  const total = () => Object.values(met).reduce((sum, count) => sum + count, 0);
  let disturbances = 0;
  const { requests = Number.POSITIVE_INFINITY, disturbances: enough = 0 } = options;
  const isOver = () =>
    performance.now() - startedMs > durationMs || (total() >= requests && disturbances >= enough);
  const count = () => {
    disturbances += 1;
  };
  const before = await readFigures(shopward.adminUrl, startedMs);

  const [{ figures, silent }] = await Promise.all([
    sample(shopward, startedMs, isOver),
    disturb({ upstream, store, redis, shopward, random, restMs }, isOver, count),
    ...Array.from({ length: visitors }, (_, i) =>
      visit({ shopward, random: createRandom(seed + i), met, pauseMs }, isOver),
    ),
  ]);
  const after = await awaitRest(shopward, startedMs, before);
  const warm = figures.slice(Math.floor(figures.length * warmUp));
  const bugs = linesOfBugs(shopward);
  const wrongs = [
    ...(silent === 0 ? [] : [`${silent} readings of /metrics had no answer`]),
    ...(met.hang === undefined ? [] : [`${met.hang} requests hung`]),
    ...endOf(shopward),
    ...Object.keys(met)
      .filter((words) => words.includes('FOREIGN') || words.startsWith('500'))
      .map((words) => `${met[words]} x ${words}`),
    ...bugs.slice(0, 5),
    ...restWrongs(before, after),
  ];
  // A hanging process ignores SIGTERM, which must not prevent the report.
  if (wrongs.length === 0) await shopward.stop();
  else await shopward.kill();
  for (const one of [upstream, store, redis]) await one.close();
  shop.close();
  return {
    met,
    requests: total(),
    disturbances,
    figures,
    before,
    after,
    rssBytesPerMinute: slopePerMinute(warm, ({ rssBytes }) => rssBytes),
    openFilesPerMinute: slopePerMinute(warm, ({ openFiles }) => openFiles),
    bugs,
    wrongs,
  };
}

async function sample(shopward: Shopward, startedMs: number, isOver: () => boolean) {
  const figures: Figures[] = [];
  let silent = 0;
  while (!isOver()) {
    const read = await tryReadFigures(shopward.adminUrl, startedMs);
    if (read === undefined) silent += 1;
    else figures.push(read);
    await sleep(sampleMs);
  }
  return { figures, silent };
}

/** Figures of a process that does not answer: not at rest. */
const nothing: Figures = {
  atMs: Number.NaN,
  rssBytes: Number.NaN,
  heapBytes: Number.NaN,
  heapTotalBytes: Number.NaN,
  externalBytes: Number.NaN,
  openFiles: Number.NaN,
  activeRequests: Number.NaN,
  upstreamRequests: Number.NaN,
};

/** Additional open files that are allowed at rest: idle connections to the upstream, to Redis and from clients. */
const keptFiles = 40;

function isAtRest(before: Figures, { activeRequests, upstreamRequests, openFiles }: Figures): boolean {
  return activeRequests === 0 && upstreamRequests === 0 && openFiles <= before.openFiles + keptFiles;
}

async function awaitRest(shopward: Shopward, startedMs: number, before: Figures): Promise<Figures> {
  const deadline = performance.now() + 60_000;
  for (;;) {
    const figures = await tryReadFigures(shopward.adminUrl, startedMs);
    if (figures !== undefined && isAtRest(before, figures)) return figures;
    if (performance.now() > deadline) return figures ?? nothing;
    await sleep(200);
  }
}

function restWrongs(before: Figures, after: Figures): string[] {
  return isAtRest(before, after)
    ? []
    : [`not at rest: ${JSON.stringify(after)}, before ${JSON.stringify(before)}`];
}

/** If the process has ended: how, and its last line. It may have ended itself, because its event loop was blocked. */
function endOf({ exitCode, signalCode, output }: Shopward): string[] {
  if (exitCode === null && signalCode === null) return [];
  return [`shopward ended with ${signalCode ?? exitCode}: ${output().trimEnd().split('\n').at(-1)}`];
}

function linesOfBugs(shopward: Shopward): string[] {
  const lines = shopward.output().split('\n');
  return lines.filter((line) => /"event":"(fault|crash)"|nhandled|Warning:/.test(line));
}
