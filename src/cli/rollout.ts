import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import path from 'node:path';
import type { Command } from 'commander';
import { rejectionKind, rejectionNames } from '../http/rejection-kind.ts';
import { isObject, parseJson } from '../lib/json.ts';
import { RolloutCounts } from '../rollout/counts.ts';
import {
  type Counting,
  type ReasonReport,
  type RolloutReport,
  type RowReport,
  reportRollout,
  toText,
  type Verdict,
} from '../rollout/report.ts';
import { askAdmin } from './admin-verbs.ts';
import {
  badConfiguration,
  badUsage,
  type CommandIo,
  type CommonChoice,
  escapeToLine,
  processIo,
} from './command-io.ts';
import { configFile, declareVerb, json } from './declare-verb.ts';
import { loadConfiguration } from './load-configuration.ts';

export function declareRollout(program: Command): void {
  declareVerb(
    program,
    'rollout',
    'is it safe to enforce? who would be refused, and what to do',
    async (files, options) => runRollout(files, options),
  )
    .argument('[log...]', 'files of its log; left out: the running proxy is asked')
    .addOption(configFile)
    .addOption(json);
}

/** Nobody would have been refused so far, but that is not known for seven days. */
const notKnown = 3;
const exitCodes: Readonly<Record<Verdict, number>> = {
  safe: 0,
  enforced: 0,
  refuses: 1,
  'not-known': notKnown,
  'not-asked': notKnown,
};

/**
 * Is it safe to enforce? Asks the running proxy, or reads its log where files are given. Exit code 0: every observed row
 * may be enforced; 1: one of them would refuse somebody; 3: none would so far, but that is not known for seven days, or
 * nobody asked for a row in them;
 * 2 on bad usage, or where there is nobody to ask or nothing to read; 78 for a configuration with problems.
 */
export async function runRollout(
  files: readonly string[],
  options: CommonChoice,
  io: CommandIo = processIo,
): Promise<number> {
  const report = await (files.length === 0 ? askProxy(options, io) : readLogs(files, options, io));
  if (typeof report === 'number') return report;
  if (options.json) io.out(JSON.stringify(report));
  else for (const line of describeReport(report)) io.out(escapeToLine(line));
  return exitCodes[report.verdict];
}

async function askProxy(options: CommonChoice, io: CommandIo): Promise<RolloutReport | number> {
  const loaded = await loadConfiguration(options.config, io);
  if (loaded === undefined) return badConfiguration;
  const { admin } = loaded.config;
  if (admin === false) {
    io.err('the configuration has no admin port (admin: false): give the files of the log');
    return badUsage;
  }
  for (let attempt = 0; attempt < mostAttempts; attempt++) {
    const report = await askPages(admin);
    if (report === undefined) continue;
    if (!('status' in report)) return report;
    io.err(report.status === 0 ? `nothing answers on the admin port ${admin.port}` : report.body);
    return badUsage;
  }
  io.err('the report changed each time before all its pages were read: ask again');
  return badUsage;
}

/** Each time the counts may be newer than those of the first page. */
const mostAttempts = 5;
const rowsOfPage = 1_000;

/** All pages of one report; undefined: another one began meanwhile. */
async function askPages(
  admin: Parameters<typeof askAdmin>[0],
): Promise<RolloutReport | Awaited<ReturnType<typeof askAdmin>> | undefined> {
  const rows: RowReport[] = [];
  let first: RolloutReport | undefined;
  for (let offset: number | null = 0; offset !== null; ) {
    const place: string = `/api/rollout?limit=${rowsOfPage}&offset=${offset}`;
    const reply = await askAdmin(admin, 'GET', place);
    if (reply.status !== 200) return reply;
    const page = JSON.parse(reply.body) as RolloutReport & { readonly next?: number | null };
    first ??= page;
    if (page.nowMs !== first.nowMs) return undefined;
    for (const row of page.rows) rows.push(row);
    offset = page.next ?? null;
  }
  return first && { ...first, rows };
}

/** Counted as the proxy counts, in as much memory. Without `--config` the rows are those that the lines name. */
async function readLogs(
  files: readonly string[],
  options: CommonChoice,
  io: CommandIo,
): Promise<RolloutReport | number> {
  const loaded = options.config === undefined ? undefined : await loadConfiguration(options.config, io);
  if (options.config !== undefined && loaded === undefined) return badConfiguration;
  const counted = new LogCounts();
  for (const file of files) {
    try {
      await readLog(path.resolve(io.cwd, file), counted, io);
    } catch (fault) {
      io.err(`${file} cannot be read: ${(fault as NodeJS.ErrnoException).code ?? 'a fault'}`);
      return badUsage;
    }
  }
  if (counted.requests === 0) {
    io.err('no line of an access log is in these files');
    return badUsage;
  }
  const rows = loaded?.list.rows ?? counted.rows();
  // Where nobody says what is observed, everything may be.
  const isObserving = loaded === undefined || loaded.config.mode === 'observe';
  return reportRollout(counted.counting(), rows, isObserving, counted.lastMs);
}

/** Progress is printed so often. */
const tellEveryMs = 2_000;
/** A line of ours is shorter; more is passed over without being kept. */
const longestLine = 65_536;

async function readLog(file: string, counted: LogCounts, io: CommandIo): Promise<void> {
  const { size } = await stat(file);
  let toldMs = Date.now();
  let read = 0;
  let rest = '';
  for await (const chunk of createReadStream(file, 'utf8') as AsyncIterable<string>) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    // What is longer than any line is broken, however long it goes on.
    if (rest.length > longestLine) rest = rest.slice(0, longestLine);
    for (const line of lines) counted.addLine(line);
    read += Buffer.byteLength(chunk);
    if (Date.now() - toldMs < tellEveryMs) continue;
    toldMs = Date.now();
    io.err(`${file}: ${Math.floor((100 * read) / Math.max(size, read))}% read`);
  }
  counted.addLine(rest);
}

/** What is kept of a log: nothing that grows with its length. */
class LogCounts {
  requests = 0;
  readonly #counts = new RolloutCounts(90 * 86_400_000);
  #broken = 0;
  /** Refusals that were counted in one line, without row or client. */
  #untold = 0;
  #firstMs = Number.POSITIVE_INFINITY;
  /** Time of the newest line, which the report takes for now. */
  lastMs = Number.NEGATIVE_INFINITY;

  addLine(line: string): void {
    if (line.trim() === '') return;
    const entry = line.length > longestLine ? undefined : parseJson(line);
    if (!isObject(entry)) {
      this.#broken++;
      return;
    }
    const { event, time, method, route, rejection, observed, clientAddress, count } = entry;
    if (event === 'requests-not-logged' && typeof count === 'number') this.#untold += count;
    if (event !== 'request') return;
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

const marks: Readonly<Record<Verdict, string>> = {
  refuses: 'NOT SAFE',
  'not-known': 'NOT KNOWN',
  'not-asked': 'NOT ASKED',
  safe: 'SAFE',
  enforced: 'ENFORCED',
};

function* describeReport(report: RolloutReport): Generator<string> {
  yield `${marks[report.verdict]}: ${report.text}`;
  if (report.wholeSinceMs !== null)
    yield `counted without a gap since ${toText(report.wholeSinceMs)}: ${report.why}`;
  for (const problem of report.problems) yield `but: ${problem}`;
  for (const row of report.rows) yield* describeRow(row);
}

function* describeRow({ row, verdict, text, reasons }: RowReport): Generator<string> {
  yield '';
  yield `${marks[verdict].padEnd(9)}  ${row === '*' ? '* (no row)' : row}`;
  yield `           ${text}`;
  for (const reason of reasons) yield* describeReason(reason);
}

function* describeReason(entry: ReasonReport): Generator<string> {
  const { kind, method, reason, requests, clients, sinceMs, lastSeenMs, days, next, more } = entry;
  const verb = kind === 'observed' ? 'would have been refused' : 'refused';
  const many =
    clients.count === 0 ? '' : `, of ${clients.areMore ? 'more than ' : ''}${clients.count} clients`;
  yield `           - ${method} ${reason}: ${requests} ${verb}${many}`;
  yield `             since ${toText(sinceMs)}, last ${toText(lastSeenMs)}; last seven days: ${days.join(' ')}`;
  for (const { client, userAgent, requests: ofClient } of clients.named) {
    yield `             ${client} ${userAgent === '' ? '' : `"${userAgent}" `}(${ofClient})`;
  }
  if (kind === 'observed') yield `             next: ${next} (${more})`;
}
