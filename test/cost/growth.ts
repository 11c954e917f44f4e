import type { TextKind } from './texts.ts';

/** A place where text from outside is read. A new reader is one row in one of the lists beside this file. */
export interface Reader {
  readonly name: string;
  /** Longest text that gets there, in characters. */
  readonly limit: number;
  /** Where the growing begins, where a shorter text is read in another way. Default: a quarter of the limit, or 16 KiB. */
  readonly start?: number | undefined;
  /** It is read in slices, in a thread, or before anybody is served: only its growth counts, not how much it costs. */
  readonly isBeside?: boolean | undefined;
  /** What may stand there at all. */
  readonly kinds: readonly TextKind[];
  read(text: string): unknown;
}

/** Milliseconds of CPU below which nothing is compared: it disturbs nobody, and is lost in the noise. */
const floorMs = 5;
/** Four times the text may cost so many times as much. Linear is 4. */
const mostGrowth = 6;
/**
 * The same at parts of the lengths: a square that makes 4 into 6 makes it 4.57 at a quarter of them, and 5.09 at half, and
 * some of each cost is the same at any length.
 */
const parts = [
  { part: 1 / 4, mostGrowth: 4.4 },
  { part: 1 / 2, mostGrowth: 4.8 },
];
/** Of a text above the floor an eighth still costs much more than what is the same at any length, and less than a quarter. */
const timesLonger = { cheap: 4, dear: 8 };
/** Milliseconds from which two costs are compared at parts of the lengths: the clock counts its own cost, too. */
const comparableMs = floorMs / 4;
/** Where the growing begins: short enough that the square of it is no more than a second. */
const firstLength = 16_384;
const repetitions = 8;
/** At each part: a doubt costs no more than to look a fourth time. */
const looks = 3;
/** Milliseconds from which a text that costs far too much is tried once more only. */
const hopelessMs = 500;

/** How many kinds are read at once at most, to be looked at one by one only where all of them cost more than the floor. */
const mostAtOnce = 16;

/** What was found, `most` at most. */
export async function findFaults(reader: Reader, most: number): Promise<readonly string[]> {
  const { stackTraceLimit } = Error;
  // The stack of an error costs the same at any length, and most of the time of a parser that finds thousands of them.
  if (reader.isBeside === true) Error.stackTraceLimit = 0;
  try {
    return await findAll(reader, most);
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

async function findAll(reader: Reader, most: number): Promise<readonly string[]> {
  const found: string[] = [];
  const left = [...reader.kinds];
  let atOnce = 1;
  while (left.length > 0 && found.length < most) {
    const kinds = left.splice(0, atOnce);
    const ms = reader.isBeside === true ? Infinity : await allCpuMs(reader, kinds);
    // As many as stay below the floor if they cost as much as these, and so are not read again.
    const nextAtOnce = Math.floor((floorMs / 2 / ms) * kinds.length);
    atOnce = Math.max(1, Math.min(mostAtOnce, nextAtOnce));
    if (ms <= floorMs) continue;
    const first = kinds.length === 1 && reader.isBeside !== true ? ms : undefined;
    for (const kind of kinds) {
      const fault = await findFault(reader, kind, first);
      if (fault !== undefined) found.push(fault);
    }
  }
  return found.slice(0, most);
}

/** Of all lengths that are compared with a shorter one: when it is not above the floor, none of them is. */
async function allCpuMs(reader: Reader, kinds: readonly TextKind[]): Promise<number> {
  const texts = kinds.flatMap((kind) => [...steps(reader)].map(([, longer]) => kind.make(longer)));
  const before = process.cpuUsage();
  for (const text of texts) await reader.read(text);
  return since(before);
}

/** Each length with the next one. */
function* steps({ start, limit }: Reader): Generator<readonly [shorter: number, longer: number]> {
  let length = start ?? Math.min(firstLength, limit / 4);
  while (length < limit) {
    const next = Math.min(length * 4, limit);
    yield [length, next];
    length = next;
  }
}

/**
 * `first`: what it cost already, at all lengths together.
 *
 * Undefined: the cost grows as the text does, and others wait no longer for it than is promised. Otherwise what it did.
 * One step may cost more than the lengths tell, where a list no longer fits into the young generation; what grows as a
 * square does so in both its halves.
 */
async function findFault(reader: Reader, kind: TextKind, first?: number): Promise<string | undefined> {
  for (const [length, next] of steps(reader)) {
    // Nobody waits for it, so that its growth is all there is to know; what is read in slices is not at a part of its length.
    const canShorten = reader.isBeside === true && reader.start === undefined;
    if (!canShorten || (await mayGrow(reader, kind, next))) {
      const fault = await compare(reader, kind, length, next, first);
      if (fault !== undefined) return fault;
    }
  }
  return undefined;
}

/** Whether each part of the lengths leaves a doubt. */
async function mayGrow(reader: Reader, kind: TextKind, longest: number): Promise<boolean> {
  for (const { part, mostGrowth: most } of parts) {
    const long = kind.make(longest * part);
    const longMs = await cpuMs(reader, long);
    // At the whole length even a cube costs no more than the floor.
    if (longMs <= floorMs * part ** 3) return false;
    if (longMs <= comparableMs) continue;
    const times = longMs > floorMs ? timesLonger.dear : timesLonger.cheap;
    const texts = { short: kind.make((longest * part) / times), long };
    if (!(await growsAtEachLook(reader, texts, longMs, (most / 4) * times))) return false;
  }
  return true;
}

async function growsAtEachLook(
  reader: Reader,
  { short, long }: Pick<Texts, 'short' | 'long'>,
  first: number,
  most: number,
): Promise<boolean> {
  let [shortMs, longMs] = [Infinity, first];
  for (let i = 0; i < looks; i++) {
    shortMs = Math.min(shortMs, await lesserCpuMs(reader, short));
    if (i > 0) longMs = Math.min(longMs, await cpuMs(reader, long));
    if (longMs <= most * shortMs) return false;
  }
  return true;
}

/** The short text is read only when the long one cost so much that the two have to be compared. */
async function compare(
  reader: Reader,
  kind: TextKind,
  shortest: number,
  longest: number,
  known?: number,
): Promise<string | undefined> {
  const long = kind.make(longest);
  const first = known ?? (await cpuMs(reader, long));
  if (first <= floorMs) return undefined;
  const texts = { short: kind.make(shortest), middle: kind.make(Math.sqrt(shortest * longest)), long };
  const costs = await leastOf(reader, texts, first);
  if (!isTooLong(costs) && !growsTooMuch(costs)) return undefined;
  const least = `${costs.shortMs.toFixed(2)} ms at ${Math.round(shortest)}`;
  const most = `${costs.longMs.toFixed(1)} ms at ${Math.round(longest)}`;
  return `${reader.name}, ${kind.name}: ${least}, ${most} (at most ${costs.yardstickMs.toFixed(0)})`;
}

/** Least milliseconds of several runs, taken in turns: all saw the machine when it was fast, and when it was slow. */
interface Costs {
  readonly shortMs: number;
  /** Of twice the short text, and half the long one. */
  readonly middleMs: number;
  readonly longMs: number;
  /** What 20 milliseconds of a quiet machine are on this one. Infinite for what runs beside those who are served. */
  readonly yardstickMs: number;
}

type Texts = { readonly [text in 'short' | 'middle' | 'long']: string };

/** Until they are as they should be; `first` is what the long one cost already. What cost far too much twice is not run again. */
async function leastOf(reader: Reader, texts: Texts, first: number): Promise<Costs> {
  let costs: Costs = { shortMs: Infinity, middleMs: Infinity, longMs: first, yardstickMs: Infinity };
  for (let i = 0; i < repetitions; i++) {
    const shortMs = Math.min(costs.shortMs, await lesserCpuMs(reader, texts.short));
    const longMs = i === 0 ? first : Math.min(costs.longMs, await cpuMs(reader, texts.long));
    const now = reader.isBeside ? Infinity : yardstickFor(longMs);
    costs = { ...costs, shortMs, longMs, yardstickMs: Math.min(costs.yardstickMs, now) };
    if (i > 0 && isHopeless(shortMs, longMs)) break;
    if (isTooLong(costs)) continue;
    if (longMs <= mostGrowth * shortMs || longMs <= floorMs) break;
    costs = { ...costs, middleMs: Math.min(costs.middleMs, await cpuMs(reader, texts.middle)) };
  }
  return costs;
}

function isHopeless(shortMs: number, longMs: number): boolean {
  return longMs > hopelessMs && longMs > 2 * mostGrowth * shortMs;
}

/** As a whole, and in both its halves: half a step may cost the root of it. */
function growsTooMuch({ shortMs, middleMs, longMs }: Costs): boolean {
  if (longMs <= floorMs || longMs <= mostGrowth * shortMs) return false;
  if (isHopeless(shortMs, longMs)) return true;
  const most = Math.sqrt(mostGrowth);
  return middleMs > most * shortMs && longMs > most * middleMs;
}

/** Whatever a shorter text costs. */
function isTooLong({ longMs, yardstickMs }: Costs): boolean {
  return longMs > yardstickMs;
}

/** The least that the yardstick has cost in this process. */
let leastYardstickMs = 0;

/** It costs more than most of what it is laid beside, so what needs less than half of the least that it ever was is let by. */
function yardstickFor(longMs: number): number {
  if (longMs < leastYardstickMs / 2) return leastYardstickMs;
  const yardstickMs = measureYardstick();
  leastYardstickMs = Math.min(leastYardstickMs || Infinity, yardstickMs);
  return yardstickMs;
}

/**
 * The same work of a loop over octets, beside each run that is compared with it. No clock is compared with a number, so that
 * a slower machine changes nothing.
 */
function measureYardstick(): number {
  const before = process.cpuUsage();
  let hash = 0;
  for (let pass = 0; pass < yardstickPasses; pass++) {
    for (let i = 0; i < octets.length; i++) hash = Math.imul(hash ^ (octets[i] ?? 0), 16_777_619);
  }
  return hash === 0 ? Infinity : (16 / yardstickPasses) * since(before);
}

/** Of the 16 that 20 milliseconds are: as much to see how fast the machine is. */
const yardstickPasses = 4;
const octets = Buffer.alloc(1_048_576, 'yardstick');

/** Of this process, whatever else the machine does. */
async function cpuMs(reader: Reader, text: string): Promise<number> {
  const before = process.cpuUsage();
  await reader.read(text);
  return since(before);
}

function since(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

/** Of two runs. The first one alone would make a short text dear, and so hide what a long one costs. */
async function lesserCpuMs(reader: Reader, text: string): Promise<number> {
  return Math.min(await cpuMs(reader, text), await cpuMs(reader, text));
}
