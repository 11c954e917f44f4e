import type { Reader, TextKind } from './texts.ts';

/** Milliseconds of CPU below which costs are not compared: they delay no request and are lost in the noise. */
const floorMs = 5;
/** Four times the text may cost at most this many times the CPU time. Linear growth is 4. */
const mostGrowth = 6;
/** Maximum milliseconds of CPU for the longest text, if requests wait for it. */
const mostMs = 20;
const looks = 5;

/** The kinds of text whose cost grows too fast or is too high. Needs an idle machine. */
export async function findCosts(reader: Reader): Promise<readonly string[]> {
  const { stackTraceLimit } = Error;
  // The stack of an error costs the same at any length, and is most of the time of a parser that finds thousands of them.
  if (reader.isBeside === true) Error.stackTraceLimit = 0;
  const found: string[] = [];
  for (const kind of reader.kinds) {
    const fault = await findCost(reader, kind);
    if (fault !== undefined) found.push(fault);
  }
  Error.stackTraceLimit = stackTraceLimit;
  return found;
}

async function findCost(reader: Reader, kind: TextKind): Promise<string | undefined> {
  const [short, long] = [kind.make(reader.limit / 4), kind.make(reader.limit)];
  let [shortMs, longMs] = [Infinity, await cpuMs(reader, long)];
  const isTooDear = () => reader.isBeside !== true && longMs > mostMs;
  const isFine = () => longMs <= floorMs || (longMs <= mostGrowth * shortMs && !isTooDear());
  for (let look = 0; look < looks && !isFine(); look++) {
    shortMs = Math.min(shortMs, await cpuMs(reader, short), await cpuMs(reader, short));
    longMs = Math.min(longMs, await cpuMs(reader, long));
  }
  if (isFine()) return undefined;
  return `${reader.name}, ${kind.name}: ${shortMs.toFixed(2)} ms, at four times the length ${longMs.toFixed(1)} ms`;
}

async function cpuMs(reader: Reader, text: string): Promise<number> {
  const before = process.cpuUsage();
  await reader.read(text);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}
