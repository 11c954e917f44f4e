import { createReadStream } from 'node:fs';
import { realpath, stat } from 'node:fs/promises';
import path from 'node:path';
import { rejectionKind, rejectionNames } from '../http/rejection.ts';
import { isObject, parseJson } from '../lib/json.ts';
import { type Counting, toText } from '../rollout/counting.ts';
import { RolloutCounts } from '../rollout/counts.ts';
import type { CommandIo } from './command-io.ts';
import { longestLine, readLines } from './log-lines.ts';

/** Interval at which progress is printed. */
const tellEveryMs = 2_000;

/** Counts the requests of log files; `-` is standard input. A string says why they cannot be read. */
export async function readLogFiles(
  files: readonly string[],
  counted: LogCounts,
  io: CommandIo,
): Promise<string | undefined> {
  const known = new Set<string>();
  for (const file of files) {
    const place = file === '-' ? file : path.resolve(io.cwd, file);
    try {
      const real = file === '-' ? file : await realpath(place);
      // One file by two names, or twice in a pattern, would count each request twice.
      if (known.has(real)) io.err(`${file} is read once: it was named before`);
      else await readLog(file, real, counted, io);
      known.add(real);
    } catch (fault) {
      return `${file} ${faultText(fault)}`;
    }
  }
  if (counted.requests > 0) return undefined;
  const others = counted.others > 0 ? ` (${counted.others} lines are something else)` : '';
  return `no line of an access log is in these files${others}; its lines are JSON with "event":"request"`;
}

const faultTexts: Readonly<Record<string, string>> = {
  ENOENT: 'cannot be read: there is no such file',
  EISDIR: 'is a folder: name the files in it',
  EACCES: 'cannot be read: permission denied',
};

function faultText(fault: unknown): string {
  const { code = 'a fault' } = fault as NodeJS.ErrnoException;
  if (/^(Z_|ERR_|ZSTD_)/.test(code))
    return `cannot be unpacked to its end (${code}): it is cut off, or broken`;
  return faultTexts[code] ?? `cannot be read: ${code}`;
}

async function readLog(name: string, file: string, counted: LogCounts, io: CommandIo): Promise<void> {
  const isInput = file === '-';
  const size = isInput ? undefined : (await stat(file)).size;
  const packed = isInput ? (io.input ?? []) : createReadStream(file, { highWaterMark: 256 * 1024 });
  const progress = { read: 0, toldMs: Date.now() };
  for await (const lines of readLines(packed, progress)) {
    for (const line of lines) counted.addLine(line);
    if (Date.now() - progress.toldMs < tellEveryMs) continue;
    progress.toldMs = Date.now();
    const { read } = progress;
    const share =
      size === undefined
        ? `${Math.round(read / 1024 / 1024)} MiB`
        : `${Math.floor((100 * read) / Math.max(size, read))}%`;
    io.err(`${name}: ${share} read`);
  }
}

/** The counts of a log, which do not grow with its length. */
export class LogCounts {
  requests = 0;
  /** Lines that record no request: other events, and what is not JSON. */
  others = 0;
  readonly #counts = new RolloutCounts(90 * 86_400_000);
  #broken = 0;
  /** Refusals that were counted in one line, without row or client. */
  #untold = 0;
  #firstMs = Number.POSITIVE_INFINITY;
  /** Time of the newest line, which the report takes for now. */
  lastMs = Number.NEGATIVE_INFINITY;

  /** In any order: logs of several replicas may follow one another. */
  addLine(line: string): void {
    if (line.trim() === '') return;
    const entry = line.length > longestLine ? undefined : readEntry(line);
    if (entry === undefined) {
      this.#broken++;
      this.others++;
      return;
    }
    const { event, time, method, route, rejection, observed, clientAddress, count } = entry;
    if (event === 'requests-not-logged' && typeof count === 'number') this.#untold += count;
    if (event !== 'request') {
      this.others++;
      return;
    }
    const timeMs = typeof time === 'string' ? Date.parse(time) : Number.NaN;
    if (Number.isNaN(timeMs) || typeof method !== 'string' || typeof route !== 'string') {
      this.#broken++;
      return;
    }
    this.requests++;
    this.#firstMs = Math.min(this.#firstMs, timeMs);
    this.lastMs = Math.max(this.lastMs, timeMs);
    const reason = rejectionNames.find((name) => name === (rejection ?? observed));
    if (reason === undefined || rejectionKind(reason) !== 'refusal') return;
    const kind = rejection === undefined ? 'observed' : 'refused';
    const client = typeof clientAddress === 'string' ? { client: clientAddress, userAgent: '' } : undefined;
    this.#counts.note({ kind, method: method === 'HEAD' ? 'GET' : method, route, reason }, client, timeMs);
  }

  /** Rows that a line says are observed. */
  rows() {
    const observed = this.#counts.entries().filter(({ kind }) => kind === 'observed');
    const rows = new Map(observed.map(({ method, route }) => [`${method} ${route}`, { method, route }]));
    return [...rows.values()].map(({ method, route }) => ({
      method: method as 'GET',
      template: route,
      observe: true,
    }));
  }

  counting(): Counting {
    const missing = [
      `${this.requests} requests were read, from ${toText(this.#firstMs)} to ${toText(this.lastMs)}`,
      this.#broken > 0 && `${this.#broken} lines cannot be read`,
      this.#untold > 0 && `${this.#untold} refusals were not logged one by one`,
      this.#counts.leftOutSinceMs !== undefined && 'there are more rows and reasons than are kept',
    ].filter((text) => text !== false);
    return {
      entries: this.#counts.entries(),
      asked: undefined,
      wholeSinceMs: null,
      why: '',
      problems: [`a log does not tell what is missing of it (${missing.join('; ')})`],
      rowSinceMs: () => undefined,
    };
  }
}

/**
 * Parses a line of the log, also as container runtimes and the journal keep it: with a time and a name in front, or as the
 * member `log` of an object.
 */
function readEntry(line: string): Readonly<Record<string, unknown>> | undefined {
  const start = line.indexOf('{');
  const entry = start < 0 ? undefined : parseJson(start === 0 ? line : line.slice(start));
  if (!isObject(entry)) return undefined;
  if (typeof entry.log !== 'string' || entry.event !== undefined) return entry;
  const inner = parseJson(entry.log);
  return isObject(inner) ? inner : undefined;
}
