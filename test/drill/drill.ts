import { setTimeout as sleep } from 'node:timers/promises';
import type { LogLine, Shopward } from '../harness/shopward.ts';
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
  /** Lines of the first process, where the harness does not read them. */
  readonly log?: () => readonly LogLine[];
  /** Breaks, waits and mends; clients go on meanwhile. Gives what should have been otherwise. */
  disturb(tally: Tally): Promise<readonly string[] | undefined>;
  /** Of what stands around the processes; they are stopped before. */
  close(): Promise<void>;
}

export interface Drill {
  readonly name: string;
  stage(length: Length): Promise<Stage>;
  /** Answers that clients may see, besides 200, 201 and the 412 of carts that are shared. */
  readonly maySee: Readonly<Record<Kind, readonly string[]>>;
  /** Each must be found in a log line (`event: message`) or in a reason of `/readyz`. */
  readonly told: readonly RegExp[];
  /** Most lines besides those of requests, of all processes together. */
  readonly linesAtMost: number;
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
/** After the drill every client has to end well what it has begun. */
const recoveryMs = 60_000;
/** So many probes that fail one after another take a pod out (`failureThreshold` of Kubernetes). */
const probesUntilOut = 3;
const normal: Readonly<Record<Kind, readonly string[]>> = {
  read: ['200'],
  write: ['200', '412 006'],
  refresh: ['201'],
};

export async function runDrill(drill: Drill, length: Length): Promise<DrillResult> {
  const stage = await drill.stage(length);
  const tally = new Tally();
  const { shop, fronts, processes } = stage;
  await awaitTags(fronts, shop);
  const operators = processes.map((one, i) => watch(one, i === 0 ? stage.log : undefined));
  let isOver = false;
  const giveUp = new AbortController();
  const running = Array.from({ length: clients }, (_, i) =>
    new DrillClient({
      name: `u${i}`,
      cart: `c${i % carts}`,
      fronts,
      tally,
      shop,
      pauseMs: 20 + i * 4,
    }).run(() => isOver, giveUp.signal),
  );
  await sleep(calmMs[length]);
  const own = (await stage.disturb(tally)) ?? [];
  // Every client has one more of each kind to end well, as long as it may take.
  const late = setTimeout(() => giveUp.abort(), recoveryMs);
  await sleep(calmMs[length]);
  isOver = true;
  await Promise.all(running);
  clearTimeout(late);
  for (const operator of operators) await operator.close();
  const ended: string[] = [];
  for (const one of processes) {
    await one.stop().catch((fault: Error) => ended.push(`ended badly: ${fault.message.slice(0, 200)}`));
  }
  await stage.close();
  const wrongs = [...own, ...judge(drill, tally, operators, shop), ...ended];
  return { name: drill.name, tally, operators, wrongs };
}

/** A store that is new hands out no tags at first: the drill begins when all is well. */
async function awaitTags(fronts: () => readonly Front[], shop: DrillShop): Promise<void> {
  for (const front of fronts()) {
    const tally = new Tally();
    const client = new DrillClient({
      name: `warm-${front.port}`,
      cart: 'warm',
      fronts: () => [front],
      tally,
      shop,
      pauseMs: 20,
    });
    await client.run(() => tally.done.refresh > 0, AbortSignal.timeout(recoveryMs));
    if (tally.wrongs.length > 0) throw new Error(`never well: ${tally.wrongs.join(', ')}`);
  }
}

function judge(
  { maySee, told, linesAtMost }: Drill,
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
    ...(shop.lostUpdates === 0 ? [] : [`${shop.lostUpdates} lost updates`]),
    ...(shop.doubleExchanges === 0 ? [] : [`${shop.doubleExchanges} tokens exchanged twice`]),
    ...unreported.map((words) => `nobody was told ${words}; what was told: ${JSON.stringify(said)}`),
    ...(lines <= linesAtMost ? [] : [`${lines} lines of log, ${linesAtMost} at most`]),
    ...(silent === 0 ? [] : [`${probesUntilOut} probes in a row without an answer`]),
    ...bugs,
  ];
}
