import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RunningShopward } from '../../harness/shopward.ts';
import {
  askAll,
  askRoute,
  type Cells,
  type Front,
  healthy,
  prepare,
  type RouteName,
  readTagged,
  routeNames,
} from './routes.ts';

/** One way in which a dependency breaks, and what clients may see of it. */
export interface FaultRow {
  readonly name: string;
  begin(): Promise<unknown> | unknown;
  end(): Promise<unknown> | unknown;
  /** Of every route that is not named; several words: any of them. */
  readonly seen: string | readonly string[];
  readonly but?: { readonly [Route in RouteName]?: string | readonly string[] };
  /** What the tag from before the fault is good for, right after it. */
  readonly oldTag: string | readonly string[];
  /** The same when all is well again. Default: not asked. */
  readonly oldTagLater?: string;
  /** So many clients ask each question, each about ids of its own. Default 1. */
  readonly times?: number;
  /**
   * So many carts are read once the fault is over: each slot of a Cluster that is a new store lets nobody in for a lease
   * of its own, from when it is first asked. Default 0.
   */
  readonly meets?: number;
}

export interface RowResult {
  readonly name: string;
  readonly cells: Cells;
  readonly oldTag: string;
  /** Milliseconds from the end of the fault until every kind of route worked. */
  readonly wellAfterMs: number;
  /** What should have been otherwise; empty when all is as it must be. */
  readonly wrongs: readonly string[];
}

/** Mappings are asked anew after this time: a known URL is stale in every row. */
export const mappingTtlMs = 100;
/** Other processes are held up as long as this one, or longer. */
const stallMs = 100;
const recoveryMs = 30_000;

/**
 * Breaks, asks, mends, and asks until all is well; by the same proxy. Where this machine stood still meanwhile, a wrong
 * result may be its doing (every deadline is real here), and the row is run again: a fault of ours is wrong every time.
 */
export async function runRow(shopward: RunningShopward, row: FaultRow): Promise<RowResult> {
  const stalls = monitorEventLoopDelay({ resolution: 10 });
  for (let attempt = 1; ; attempt += 1) {
    stalls.reset();
    stalls.enable();
    const result = await runOnce(shopward, row);
    stalls.disable();
    if (result.wrongs.length === 0 || attempt === 5 || stalls.max / 1e6 < stallMs) return result;
  }
}

async function runOnce(shopward: RunningShopward, row: FaultRow): Promise<RowResult> {
  const front: Front = { port: shopward.port, token: shopward.issueToken() };

  const prepared = await Promise.all(Array.from({ length: row.times ?? 1 }, () => prepare(front)));
  await sleep(mappingTtlMs + 20);
  await row.begin();
  const cells = joinCells(await Promise.all(prepared.map((one) => askAll(front, one))));

  await row.end();
  const endedMs = performance.now();
  const askOldTags = async () => {
    const asked = await Promise.all(prepared.map((one) => askRoute(front, one, 'tagged PATCH')));
    return joinWords(asked.map(({ words }) => words));
  };
  const oldTag = await askOldTags();
  await Promise.all(Array.from({ length: row.meets ?? 0 }, () => readTagged(front)));
  const sick = await findSick(front, endedMs + recoveryMs);
  const wellAfterMs = Math.round(performance.now() - endedMs);
  const wrongs = [
    ...routeNames.flatMap((route) => validate(route, cells[route], row.but?.[route] ?? row.seen)),
    ...validate('the tag of before', oldTag, row.oldTag),
    ...(row.oldTagLater === undefined
      ? []
      : validate('the tag of before, later', await askOldTags(), row.oldTagLater)),
    ...sick.map((one) => `after the fault: ${one}`),
    ...bugsOf(shopward),
  ];
  return { name: row.name, cells, oldTag, wellAfterMs, wrongs };
}

/** A proxy, and the faults of what it depends on. */
export interface Stage {
  readonly shopward: RunningShopward;
  readonly rows: readonly FaultRow[];
  close(): Promise<unknown>;
}

/**
 * The results of all rows, in their order. Most of a row is waiting, so there are several stages of the same rows, and
 * each row runs on the one that is free first.
 */
export async function runRows(stages: number, open: () => Promise<Stage>): Promise<RowResult[]> {
  const results: RowResult[] = [];
  let taken = 0;
  async function runOnOne() {
    const { shopward, rows, close } = await open();
    await awaitHealth(shopward);
    for (let row = rows[taken]; row !== undefined; row = rows[taken]) {
      const place = taken;
      taken += 1;
      results[place] = await runRow(shopward, row);
    }
    await shopward.stop();
    await close();
  }
  await Promise.all(Array.from({ length: stages }, runOnOne));
  return results;
}

/** A new store hands out no tags at first. */
export async function awaitHealth(shopward: RunningShopward): Promise<void> {
  const front = { port: shopward.port, token: shopward.issueToken() };
  const sick = await findSick(front, performance.now() + recoveryMs);
  if (sick.length > 0) throw new Error(`never well: ${sick.join(', ')}`);
}

/** Asks with new ids until every route gives what it should; what does not, when time is over. */
async function findSick(front: Front, deadlineMs: number): Promise<string[]> {
  for (;;) {
    const cells = await askAll(front, await prepare(front));
    const sick = routeNames.filter((route) => cells[route] !== healthy[route]);
    if (sick.length === 0 || performance.now() > deadlineMs) {
      return sick.map((route) => `${route}: ${cells[route]}`);
    }
    // A lease, at the longest: eleven requests each time.
    await sleep(400);
  }
}

function validate(what: string, is: string, allowed: string | readonly string[]): string[] {
  const all = typeof allowed === 'string' ? [allowed] : allowed;
  const isAllowed = is.split(between).every((words) => all.includes(words));
  return isAllowed ? [] : [`${what}: ${is}, instead of ${all.join(' or ')}`];
}

const between = ', ';

/** What different clients saw of the same route. */
function joinWords(all: readonly string[]): string {
  return [...new Set(all)].toSorted().join(between);
}

function joinCells(all: readonly Cells[]): Cells {
  const cells = routeNames.map((route) => [route, joinWords(all.map((one) => one[route]))]);
  return Object.fromEntries(cells) as Cells;
}

function bugsOf(shopward: RunningShopward): string[] {
  return shopward
    .output()
    .split('\n')
    .filter((line) => /"event":"fault"|nhandled|Warning:/.test(line))
    .map((line) => line.slice(0, 600));
}
