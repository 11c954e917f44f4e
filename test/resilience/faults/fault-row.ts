import { setTimeout as sleep } from 'node:timers/promises';
import type { RunningShopward } from '../../harness/shopward.ts';
import {
  askAll,
  askRoute,
  type Cells,
  type Front,
  healthy,
  type Prepared,
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
  /** Allowed answer, or answers, of each route that `but` does not name. */
  readonly seen: string | readonly string[];
  readonly but?: { readonly [Route in RouteName]?: string | readonly string[] };
  /** Answer to a write with the tag from before the fault, right after the fault. */
  readonly oldTag: string | readonly string[];
  /** The same once all routes work again. Default: not asked. */
  readonly oldTagLater?: string;
  /** Number of clients that send each request, each with its own ids. Default 1. */
  readonly times?: number;
  /**
   * Number of carts to read after the fault. Each slot of a Cluster that counts as a new store hands out no tag for a lease,
   * which begins with the first read. Default 0.
   */
  readonly meets?: number;
}

export interface RowResult {
  readonly name: string;
  readonly cells: Cells;
  readonly oldTag: string;
  /** Milliseconds from the end of the fault until every kind of route worked. */
  readonly wellAfterMs: number;
  /** Deviations from what is allowed. */
  readonly wrongs: readonly string[];
}

/** Mappings expire after this time, so a known URL is stale in every row. */
export const mappingTtlMs = 100;
/** Only a bug takes longer. */
const recoveryMs = 60_000;

/** Begins the fault, sends requests, ends it, and sends requests until all routes work, through one proxy. */
async function runRow(shopward: RunningShopward, row: FaultRow): Promise<RowResult> {
  const front: Front = { port: shopward.port, token: shopward.issueToken() };

  const prepared = await Promise.all(Array.from({ length: row.times ?? 1 }, () => prepareTagged(front)));
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

/** The fault before may still break a connection to Redis, which costs a read its tag. */
async function prepareTagged(front: Front): Promise<Prepared> {
  const deadlineMs = performance.now() + recoveryMs;
  for (;;) {
    const prepared = await prepare(front);
    if (prepared.tag !== undefined || performance.now() > deadlineMs) return prepared;
    await sleep(100);
  }
}

/** A proxy, and the faults of its dependencies. */
export interface Stage {
  readonly shopward: RunningShopward;
  readonly rows: readonly FaultRow[];
  close(): Promise<unknown>;
}

/**
 * Runs all rows and returns the results in their order. Most of a row is waiting, so there are several stages, and
 * each row runs on the first free one.
 */
export async function runRows(stages: number, open: () => Promise<Stage>): Promise<RowResult[]> {
  const results: RowResult[] = [];
  let taken = 0;
  async function runOnOne() {
    const { shopward, rows, close } = await open();
    await awaitHealth(shopward);
    for (let row = rows[taken]; row !== undefined; row = rows[taken]) {
      const index = taken;
      taken += 1;
      results[index] = await runRow(shopward, row);
    }
    await shopward.stop();
    await close();
  }
  await Promise.all(Array.from({ length: stages }, runOnOne));
  return results;
}

/** Waits until every route works: a new store hands out no tags at first. */
async function awaitHealth(shopward: RunningShopward): Promise<void> {
  const front = { port: shopward.port, token: shopward.issueToken() };
  const sick = await findSick(front, performance.now() + recoveryMs);
  if (sick.length > 0) throw new Error(`never well: ${sick.join(', ')}`);
}

/** Sends requests with new ids until every route works, or returns those that do not at the deadline. */
async function findSick(front: Front, deadlineMs: number): Promise<string[]> {
  for (;;) {
    const cells = await askAll(front, await prepare(front));
    const sick = routeNames.filter((route) => cells[route] !== healthy[route]);
    if (sick.length === 0 || performance.now() > deadlineMs) {
      return sick.map((route) => `${route}: ${cells[route]}`);
    }
    // Each try sends eleven requests, and the wait is at most a lease.
    await sleep(400);
  }
}

function validate(what: string, is: string, allowed: string | readonly string[]): string[] {
  const all = typeof allowed === 'string' ? [allowed] : allowed;
  const isAllowed = is.split(between).every((words) => all.includes(words));
  return isAllowed ? [] : [`${what}: ${is}, instead of ${all.join(' or ')}`];
}

const between = ', ';

/** Joins the answers of several clients on one route. */
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
