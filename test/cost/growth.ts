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
/** Where the growing begins: short enough that the square of it is no more than a second. */
const firstLength = 16_384;
const repetitions = 8;
/** Milliseconds from which a text that costs far too much is tried once more only. */
const hopelessMs = 500;

/**
 * Undefined: the cost grows as the text does, and others wait no longer for it than is promised. Otherwise what it did.
 * The short text is read only when the long one cost so much that the two have to be compared. One step may cost more than
 * the lengths tell, where a list no longer fits into the young generation; what grows as a square does so in both its halves.
 */
export async function findFault(reader: Reader, kind: TextKind): Promise<string | undefined> {
  let length = reader.start ?? Math.min(firstLength, reader.limit / 4);
  while (length < reader.limit) {
    const next = Math.min(length * 4, reader.limit);
    const long = kind.make(next);
    const cost = await cpuMs(reader, long);
    if (isDear(cost)) {
      const costs = await leastOf(reader, kind.make(length), long, cost);
      const middle = kind.make(Math.sqrt(length * next));
      const growsAlike = async () => growsInHalves(costs, await leastCost(reader, middle));
      if (isTooLong(costs) || (growsTooMuch(costs) && (await growsAlike()))) {
        const least = `${costs.shortMs.toFixed(2)} ms at ${Math.round(length)}`;
        const most = `${costs.longMs.toFixed(1)} ms at ${Math.round(next)}`;
        return `${reader.name}, ${kind.name}: ${least}, ${most} (at most ${costs.yardstickMs.toFixed(0)})`;
      }
    }
    length = next;
  }
  return undefined;
}

function isDear(ms: number): boolean {
  return ms > floorMs;
}

/** Least milliseconds of several runs, taken in turns: all saw the machine when it was fast, and when it was slow. */
interface Costs {
  readonly shortMs: number;
  readonly longMs: number;
  /** What 20 milliseconds of a quiet machine are on this one. Infinite for what runs beside those who are served. */
  readonly yardstickMs: number;
}

/** Until they are as they should be; `first` is what the long one cost already. What cost far too much twice is not run again. */
async function leastOf(reader: Reader, short: string, long: string, first: number): Promise<Costs> {
  let costs: Costs = { shortMs: Infinity, longMs: first, yardstickMs: Infinity };
  for (let i = 0; i < repetitions; i++) {
    costs = {
      shortMs: Math.min(costs.shortMs, await cpuMs(reader, short)),
      longMs: i === 0 ? first : Math.min(costs.longMs, await cpuMs(reader, long)),
      yardstickMs: reader.isBeside ? Infinity : Math.min(costs.yardstickMs, measureYardstick()),
    };
    if (!(growsTooMuch(costs) || isTooLong(costs)) || (i > 0 && isHopeless(costs))) break;
  }
  return costs;
}

function isHopeless({ shortMs, longMs }: Costs): boolean {
  return longMs > hopelessMs && longMs > 2 * mostGrowth * shortMs;
}

function growsTooMuch({ shortMs, longMs }: Costs): boolean {
  return isDear(longMs) && longMs > mostGrowth * shortMs;
}

/** Whatever a shorter text costs. */
function isTooLong({ longMs, yardstickMs }: Costs): boolean {
  return longMs > yardstickMs;
}

/**
 * The same work of a loop over octets, beside each run that is compared with it. No clock is compared with a number, so that
 * a slower machine changes nothing.
 */
function measureYardstick(): number {
  const before = process.cpuUsage();
  let hash = 0;
  for (let pass = 0; pass < 16; pass++) {
    for (let i = 0; i < octets.length; i++) hash = Math.imul(hash ^ (octets[i] ?? 0), 16_777_619);
  }
  const { user, system } = process.cpuUsage(before);
  return hash === 0 ? Infinity : (user + system) / 1000;
}

const octets = Buffer.alloc(1_048_576, 'yardstick');

/** Half a step may cost the root of `mostGrowth` times as much. */
function growsInHalves(costs: Costs, middleMs: number): boolean {
  const most = Math.sqrt(mostGrowth);
  return isHopeless(costs) || (middleMs > most * costs.shortMs && costs.longMs > most * middleMs);
}

async function leastCost(reader: Reader, text: string): Promise<number> {
  let least = Infinity;
  for (let i = 0; i < repetitions; i++) least = Math.min(least, await cpuMs(reader, text));
  return least;
}

/** Of this process, whatever else the machine does. */
async function cpuMs(reader: Reader, text: string): Promise<number> {
  const before = process.cpuUsage();
  await reader.read(text);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}
