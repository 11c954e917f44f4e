import { setTimeout as sleep } from 'node:timers/promises';
import type { Shopward } from '../../harness/shopward.ts';
import { DrillClient, type Front } from './client.ts';
import { type Operator, watch } from './operator.ts';
import type { DrillShop } from './shop.ts';
import { type Kind, kinds, Tally } from './tally.ts';

/** `short`: the same, a few seconds long, for the tests. */
export type Length = 'full' | 'short';

/** A running installation in which something is about to break. */
export interface Stage {
  readonly shop: DrillShop;
  /** Every process there was; those that take requests now are `fronts`. */
  readonly processes: readonly Shopward[];
  readonly fronts: () => readonly Front[];
  /** Of what stands around the processes; they are stopped before. */
  close(): Promise<void>;
}

/** Drills of one installation, one after the other: each begins when all is well, and any of them can be left out. */
export interface DrillGroup<S extends Stage = Stage> {
  stage(length: Length): Promise<S>;
  readonly drills: readonly Drill<S>[];
}

export interface Drill<S extends Stage = Stage> {
  readonly name: string;
  /** Brings in, before there are clients, what only this drill needs. */
  prepare?(stage: S): Promise<void>;
  /** Breaks, waits and mends; clients go on meanwhile. Gives what should have been otherwise. */
  disturb(stage: S, length: Length, tally: Tally): Promise<readonly string[] | undefined>;
  /** Answers that clients may see, besides 200, 201 and the 412 of carts that are shared. */
  readonly maySee: Readonly<Record<Kind, readonly string[]>>;
  /** Each must be found in a log line (`event: message`) or in a reason of `/readyz`. */
  readonly told: readonly RegExp[];
  /** Most lines besides those of requests, of all processes together. */
  readonly linesAtMost: number;
  /** Most lines of one event among them. */
  readonly eventAtMost?: Readonly<Record<string, number>>;
}

export interface DrillResult {
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
 * Between two rounds of the first client; each next one waits a fifth longer. Many short drills run at once; whatever is
 * broken in them stays so for long enough that every client comes several times.
 */
const pauseMs = { full: 20, short: 200 };
/** After the drill every client has to end well what it has begun. */
const recoveryMs = 60_000;
/** So many probes that fail one after another take a pod out (`failureThreshold` of Kubernetes). */
const probesUntilOut = 3;
const normal: Readonly<Record<Kind, readonly string[]>> = {
  read: ['200'],
  write: ['200', '412 006'],
  refresh: ['201'],
};

/** Never rejects: a drill that breaks by itself is a row of the table, and a wrong. How all ended is told of the last one. */
export async function runDrills(
  { stage: start, drills }: DrillGroup,
  length: Length,
): Promise<DrillResult[]> {
  const results: DrillResult[] = [];
  const ended: string[] = [];
  const note = (what: string) => (fault: unknown) => void ended.push(`${what}: ${firstLine(fault)}`);
  const stage = await start(length).catch(note('it did not start'));
  for (const drill of drills) {
    results.push(
      stage === undefined
        ? { name: drill.name, tally: new Tally(), operators: [], wrongs: [] }
        : await runDrill(drill, stage, length),
    );
  }
  for (const one of stage?.processes ?? []) await one.stop().catch(note('ended badly'));
  await stage?.close().catch(note('the stage did not close'));
  return results.map((result, i) =>
    i === results.length - 1 ? { ...result, wrongs: [...result.wrongs, ...ended] } : result,
  );
}

async function runDrill(drill: Drill, stage: Stage, length: Length): Promise<DrillResult> {
  const tally = new Tally();
  const operators: Operator[] = [];
  const wrongs: string[] = [];
  try {
    wrongs.push(...(await disturbUnderLoad(drill, stage, length, tally, operators)));
  } catch (fault) {
    wrongs.push(`the drill itself broke: ${firstLine(fault)}`);
  }
  for (const operator of operators) await operator.close();
  wrongs.push(...validate(drill, tally, operators, stage.shop));
  return { name: drill.name, tally, operators, wrongs };
}

/** Of drills so far: no client has the name of another one, nor its refresh tokens. */
let begun = 0;

/** Gives what should have been otherwise; the operators that it adds watch until they are closed. */
async function disturbUnderLoad(
  drill: Drill,
  stage: Stage,
  length: Length,
  tally: Tally,
  operators: Operator[],
): Promise<readonly string[]> {
  begun += 1;
  const names = `d${begun}`;
  await drill.prepare?.(stage);
  const { shop, fronts, processes } = stage;
  await awaitTags(fronts, shop, names);
  operators.push(...processes.map(watch));
  let isOver = false;
  const giveUp = new AbortController();
  const running = Array.from({ length: clients }, (_, i) =>
    new DrillClient({
      name: `${names}-u${i}`,
      cart: `c${i % carts}`,
      fronts,
      tally,
      shop,
      pauseMs: pauseMs[length] * (1 + i / 5),
      turn: i,
    }).run(() => isOver && (tally.missing.length === 0 || giveUp.signal.aborted), giveUp.signal),
  );
  try {
    await sleep(calmMs[length]);
    tally.breaks();
    const own = (await drill.disturb(stage, length, tally)) ?? [];
    // Every client has one more of each kind to end well, as long as it may take.
    await sleep(calmMs[length]);
    return own;
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

/** A store that is new hands out no tags at first: the drill begins when all is well. */
async function awaitTags(fronts: () => readonly Front[], shop: DrillShop, names: string): Promise<void> {
  for (const front of fronts()) {
    const tally = new Tally();
    const client = new DrillClient({
      name: `${names}-warm-${front.port}`,
      cart: 'warm',
      fronts: () => [front],
      tally,
      shop,
      pauseMs: 20,
      turn: 3,
    });
    await client.run(() => tally.done.refresh > 0, AbortSignal.timeout(recoveryMs));
    if (tally.wrongs.length > 0) throw new Error(`never well: ${tally.wrongs.join(', ')}`);
  }
}

function validate(
  { maySee, told, linesAtMost, eventAtMost = {} }: Drill,
  tally: Tally,
  operators: readonly Operator[],
  shop: DrillShop,
): string[] {
  const strange = kinds.flatMap((kind) =>
    [...tally.seen[kind].keys()]
      .filter((words) => !normal[kind].includes(words) && !maySee[kind].includes(words))
      .map((words) => `${kind}: ${words}`),
  );
  const said = operators.flatMap((operator) => [...operator.lines(), ...operator.reasons]);
  const unreported = told.filter((words) => !said.some((text) => words.test(text)));
  const lines = operators.reduce((sum, operator) => sum + operator.lines().length, 0);
  const silent = operators.filter(({ longestSilence }) => longestSilence >= probesUntilOut).length;
  const bugs = said.filter((text) => /^(fault|crash):/.test(text));
  return [
    ...tally.wrongs,
    ...strange,
    // A drill in which nothing happened proves nothing.
    ...tally.missing.map((kind) => `no ${kind} began after the fault and ended well`),
    ...(shop.lostUpdates === 0 ? [] : [`${shop.lostUpdates} lost updates`]),
    ...(shop.doubleExchanges === 0 ? [] : [`${shop.doubleExchanges} tokens exchanged twice`]),
    ...unreported.map((words) => `nobody was told ${words}; what was told: ${JSON.stringify(said)}`),
    ...(lines <= linesAtMost ? [] : [`${lines} lines of log, ${linesAtMost} at most`]),
    ...Object.entries(eventAtMost).flatMap(([event, most]) => {
      const times = operators.reduce((sum, operator) => sum + (operator.events().get(event) ?? 0), 0);
      return times <= most ? [] : [`${times} lines of ${event}, ${most} at most`];
    }),
    ...(silent === 0 ? [] : [`${probesUntilOut} probes in a row without an answer`]),
    ...bugs,
  ];
}
