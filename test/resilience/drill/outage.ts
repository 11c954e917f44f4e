import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../../harness/eventually.ts';
import type { Shopward } from '../../harness/shopward.ts';
import { OutageClient, type Front } from './client.ts';
import { type Operator, watch } from './operator.ts';
import type { OutageShop } from '../faults/shop.ts';
import { type Kind, kinds, Tally } from './tally.ts';

/** `short`: the same outage in a few seconds, for the tests. */
export type Length = 'full' | 'short';

/** A running installation in which something is about to break. */
export interface Stage {
  readonly shop: OutageShop;
  /** Every process so far; `fronts` are those that take requests now. */
  readonly processes: readonly Shopward[];
  readonly fronts: () => readonly Front[];
  /** Closes everything but the processes, which are stopped before. */
  close(): Promise<void>;
}

/** Outages of one installation. They run one after the other, each begins when all is well, and each can be left out. */
export interface OutageGroup<S extends Stage = Stage> {
  stage(length: Length): Promise<S>;
  readonly outages: readonly Outage<S>[];
}

export interface Outage<S extends Stage = Stage> {
  readonly name: string;
  /** Starts what only this outage needs, before clients run. */
  prepare?(stage: S): Promise<void>;
  /**
   * Breaks something, waits and repairs it while clients run. `untilTold` resolves once operators have seen all of `told`: a
   * fault whose signs end with it must last that long.
   */
  disturb(stage: S, length: Length, tally: Tally, untilTold: () => Promise<unknown>): Promise<unknown>;
  /** Answers that clients may see besides those of `normal`. */
  readonly maySee: Readonly<Record<Kind, readonly string[]>>;
  /** Each must match a log line (`event: message`) or a reason of `/readyz`. */
  readonly told: readonly RegExp[];
  /** Maximum number of log lines of all processes together, without those of requests. */
  readonly linesAtMost: number;
}

export interface OutageResult {
  readonly name: string;
  readonly tally: Tally;
  readonly operators: readonly Operator[];
  readonly wrongs: readonly string[];
}

const clients = 6;
/** Fewer than clients: some carts have two writers. */
const carts = 4;
const calmMs = { full: 2_000, short: 500 };
/**
 * Pause of the first client between two rounds; each further client waits a fifth longer. Short outages run concurrently, so
 * they pause longer; a fault in them still lasts for several rounds.
 */
const pauseMs = { full: 20, short: 200 };
/** After the outage, clients go on until each kind of request has succeeded again, for this long at most. */
const recoveryMs = 60_000;
/** Kubernetes restarts a container after this many failed probes in a row (`failureThreshold` of the liveness probe). */
const probesUntilOut = 3;
const normal: Readonly<Record<Kind, readonly string[]>> = {
  read: ['200'],
  write: ['200', '412 006'],
  refresh: ['201'],
};

/** Never rejects: a fault of an outage is one of its `wrongs`. Those of the last one include faults of start and stop. */
export async function runOutages(
  { stage: start, outages }: OutageGroup,
  length: Length,
): Promise<OutageResult[]> {
  const results: OutageResult[] = [];
  const ended: string[] = [];
  const note = (what: string) => (fault: unknown) => void ended.push(`${what}: ${firstLine(fault)}`);
  const stage = await start(length).catch(note('it did not start'));
  for (const outage of outages) {
    results.push(
      stage === undefined
        ? { name: outage.name, tally: new Tally(), operators: [], wrongs: [] }
        : await runOutage(outage, stage, length),
    );
  }
  for (const one of stage?.processes ?? []) await one.stop().catch(note('ended badly'));
  await stage?.close().catch(note('the stage did not close'));
  return results.map((result, i) =>
    i === results.length - 1 ? { ...result, wrongs: [...result.wrongs, ...ended] } : result,
  );
}

async function runOutage(outage: Outage, stage: Stage, length: Length): Promise<OutageResult> {
  const tally = new Tally();
  const operators: Operator[] = [];
  const wrongs: string[] = [];
  try {
    await disturbUnderLoad(outage, stage, length, tally, operators);
  } catch (fault) {
    wrongs.push(`the outage itself broke: ${firstLine(fault)}`);
  }
  for (const operator of operators) await operator.close();
  wrongs.push(...validate(outage, tally, operators, stage.shop));
  return { name: outage.name, tally, operators, wrongs };
}

/** Number of outages so far. It makes the names of clients, and so their refresh tokens, unique. */
let begun = 0;

/** The operators that it adds watch until the caller closes them. */
async function disturbUnderLoad(
  outage: Outage,
  stage: Stage,
  length: Length,
  tally: Tally,
  operators: Operator[],
): Promise<void> {
  begun += 1;
  const names = `d${begun}`;
  await outage.prepare?.(stage);
  const { shop, fronts, processes } = stage;
  await awaitTags(fronts, shop, names);
  operators.push(...processes.map(watch));
  let isOver = false;
  const giveUp = new AbortController();
  const running = Array.from({ length: clients }, (_, i) =>
    new OutageClient({
      name: `${names}-u${i}`,
      cart: `c${i % carts}`,
      fronts,
      tally,
      shop,
      pauseMs: pauseMs[length] * (1 + i / 5),
      offset: i,
    }).run(() => isOver && (tally.missing.length === 0 || giveUp.signal.aborted), giveUp.signal),
  );
  try {
    await sleep(calmMs[length]);
    tally.breaks();
    // A sign that never comes is reported by `validate`.
    const untilTold = () =>
      eventually('sign', () => missingSigns(outage, operators).length === 0 || undefined, recoveryMs).catch(
        () => {},
      );
    await outage.disturb(stage, length, tally, untilTold);
    await untilTold();
    // Then clients go on until each kind has succeeded again, for `recoveryMs` at most.
    await sleep(calmMs[length]);
  } finally {
    const late = setTimeout(() => giveUp.abort(), recoveryMs);
    isOver = true;
    await Promise.all(running);
    clearTimeout(late);
  }
}

function firstLine(fault: unknown): string {
  return (
    String(fault instanceof Error ? fault.message : fault)
      .split('\n', 1)[0]
      ?.slice(0, 200) ?? ''
  );
}

/** Waits until each front works, because a new store hands out no tags at first. */
async function awaitTags(fronts: () => readonly Front[], shop: OutageShop, names: string): Promise<void> {
  for (const front of fronts()) {
    const tally = new Tally();
    const client = new OutageClient({
      name: `${names}-warm-${front.port}`,
      cart: 'warm',
      fronts: () => [front],
      tally,
      shop,
      pauseMs: 20,
      offset: 3,
    });
    await client.run(() => tally.done.refresh > 0, AbortSignal.timeout(recoveryMs));
    if (tally.wrongs.length > 0) throw new Error(`never well: ${tally.wrongs.join(', ')}`);
  }
}

/** What operators have seen so far: log lines and reasons of `/readyz`. */
function signsOf(operators: readonly Operator[]): string[] {
  return operators.flatMap((operator) => [...operator.lines(), ...operator.reasons]);
}

function missingSigns({ told }: Outage, operators: readonly Operator[]): RegExp[] {
  const said = signsOf(operators);
  return told.filter((words) => !said.some((text) => words.test(text)));
}

function validate(outage: Outage, tally: Tally, operators: readonly Operator[], shop: OutageShop): string[] {
  const { maySee, linesAtMost } = outage;
  const strange = kinds.flatMap((kind) =>
    [...tally.seen[kind].keys()]
      .filter((words) => !normal[kind].includes(words) && !maySee[kind].includes(words))
      .map((words) => `${kind}: ${words}`),
  );
  const said = signsOf(operators);
  const lines = operators.reduce((sum, operator) => sum + operator.lines().length, 0);
  const silent = operators.filter(({ longestSilence }) => longestSilence >= probesUntilOut).length;
  const bugs = said.filter((text) => /^(fault|crash):/.test(text));
  return [
    ...tally.wrongs,
    ...strange,
    // An outage without a success after the fault proves nothing.
    ...tally.missing.map((kind) => `no ${kind} began after the fault and ended well`),
    ...(shop.lostUpdates === 0 ? [] : [`${shop.lostUpdates} lost updates`]),
    ...(shop.doubleExchanges === 0 ? [] : [`${shop.doubleExchanges} tokens exchanged twice`]),
    ...missingSigns(outage, operators).map(
      (words) => `no log line or reason matches ${words}: ${JSON.stringify(said)}`,
    ),
    ...(lines <= linesAtMost ? [] : [`${lines} lines of log, ${linesAtMost} at most`]),
    ...(silent === 0 ? [] : [`${probesUntilOut} probes in a row without an answer`]),
    ...bugs,
  ];
}
