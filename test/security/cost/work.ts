import { Session } from 'node:inspector/promises';
import type { Reader, TextKind } from './texts.ts';

/**
 * Counts how often each block of JavaScript runs, libraries included. The count is the same on every machine and at every
 * load. It does not include work inside native functions; `npm run cost` measures their CPU time.
 */
export class WorkCounter {
  readonly #session = new Session();

  static async open(): Promise<WorkCounter> {
    const counter = new WorkCounter();
    counter.#session.connect();
    await counter.#session.post('Profiler.enable');
    await counter.#session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
    return counter;
  }

  /** Blocks run since the last call. */
  async take(): Promise<number> {
    const { result } = await this.#session.post('Profiler.takePreciseCoverage');
    let blocks = 0;
    for (const { functions } of result) {
      for (const { ranges } of functions) for (const { count } of ranges) blocks += count;
    }
    return blocks;
  }

  async countOf(work: () => unknown): Promise<number> {
    await this.take();
    await work();
    return this.take();
  }

  async close(): Promise<void> {
    await this.#session.post('Profiler.stopPreciseCoverage');
    this.#session.disconnect();
  }
}

/** Quadratic work is visible at this length. */
const shortLength = 512;
const timesLonger = 4;
/** Linear is 4, and n log n is 4.9. */
const mostGrowth = 5;
/** With this many kinds together, one quadratic kind still raises their growth above `mostGrowth`. */
const kindsAtOnce = 80;

/** Groups of kinds of text for which the work of the reader grows too fast. */
export async function findGrowth(counter: WorkCounter, reader: Reader): Promise<readonly string[]> {
  const short = reader.start ?? Math.min(shortLength, reader.limit / timesLonger);
  const found: string[] = [];
  for (let i = 0; i < reader.kinds.length; i += kindsAtOnce) {
    const kinds = reader.kinds.slice(i, i + kindsAtOnce);
    const growth = await growthFrom(counter, reader, kinds, short);
    // A longer text may take another branch once; quadratic work grows at each step.
    if (growth <= mostGrowth || (await growthFrom(counter, reader, kinds, short * timesLonger)) <= mostGrowth)
      continue;
    found.push(
      `${reader.name}, ${kinds[0]?.name} to ${kinds.at(-1)?.name}: ${growth.toFixed(1)} times the work`,
    );
  }
  return found;
}

async function growthFrom(
  counter: WorkCounter,
  reader: Reader,
  kinds: readonly TextKind[],
  short: number,
): Promise<number> {
  const work = await workAt(counter, reader, kinds, short * timesLonger);
  // Less than one block a character counts as linear.
  return work < kinds.length * short ? 0 : work / (await workAt(counter, reader, kinds, short));
}

function workAt(
  counter: WorkCounter,
  { read }: Reader,
  kinds: readonly TextKind[],
  length: number,
): Promise<number> {
  const texts = kinds.map(({ make }) => make(length));
  return counter.countOf(async () => {
    for (const text of texts) await read(text);
  });
}
