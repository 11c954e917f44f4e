import {
  type ReasonReport,
  type RolloutReport,
  type RowReport,
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
import { loadConfiguration } from './load-configuration.ts';

/** What is printed for each verdict, and the exit code. */
const verdicts: Readonly<Record<Verdict, readonly [mark: string, exitCode: number]>> = {
  safe: ['SAFE', 0],
  enforced: ['ENFORCED', 0],
  refuses: ['NOT SAFE', 1],
  'not-known': ['NOT KNOWN', 3],
  'not-asked': ['NOT ASKED', 3],
};

/**
 * Is it safe to enforce? Asks the running proxy. Exit code 0: every observed row may be enforced, or none observes; 1: a row
 * would refuse requests; 2: bad usage, or no report; 3: no refusal so far, but seven days are not counted yet, or a row had no
 * request; 78: a configuration with problems.
 */
export async function runRollout(options: CommonChoice, io: CommandIo = processIo): Promise<number> {
  const report = await askProxy(options, io);
  if (typeof report === 'number') return report;
  if (options.json) io.out(JSON.stringify(report));
  else for (const line of describeReport(report)) io.out(escapeToLine(line));
  return verdicts[report.verdict][1];
}

async function askProxy(options: CommonChoice, io: CommandIo): Promise<RolloutReport | number> {
  const loaded = await loadConfiguration(options.config, io);
  if (loaded === undefined) return badConfiguration;
  const { admin } = loaded.config;
  if (admin === false) {
    io.err(
      'admin is false in this configuration: the report comes from the admin port; set admin.port and restart',
    );
    return badUsage;
  }
  const report = await askPages(admin);
  if (report === undefined) io.err('the report changed before all its pages were read: ask again');
  else if (!('status' in report)) return report;
  else io.err(report.status === 0 ? `nothing answers on the admin port ${admin.port}` : report.body);
  return badUsage;
}

const rowsAtOnce = 1_000;

/** All pages of one report; undefined: a new report was made in between. */
async function askPages(
  admin: Parameters<typeof askAdmin>[0],
): Promise<RolloutReport | Awaited<ReturnType<typeof askAdmin>> | undefined> {
  const rows: RowReport[] = [];
  let first: RolloutReport | undefined;
  for (let offset: number | null = 0; offset !== null; ) {
    const reply = await askAdmin(admin, 'GET', `/api/rollout?limit=${rowsAtOnce}&offset=${offset}`);
    if (reply.status !== 200) return reply;
    const page = JSON.parse(reply.body) as RolloutReport & { readonly next?: number | null };
    first ??= page;
    if (page.nowMs !== first.nowMs) return undefined;
    for (const row of page.rows) rows.push(row);
    offset = page.next ?? null;
  }
  return first && { ...first, rows };
}

function* describeReport(report: RolloutReport): Generator<string> {
  yield `${verdicts[report.verdict][0]}: ${report.text}`;
  if (report.wholeSinceMs !== null)
    yield `counted without a gap since ${toText(report.wholeSinceMs)}: ${report.why}`;
  for (const problem of report.problems) yield `but: ${problem}`;
  const { client, setting, either } = report.causes;
  if (report.verdict === 'refuses')
    yield `of these requests: ${client} need a change of a client, ${setting} of a setting, ${either} of either`;
  for (const row of report.rows) yield* describeRow(row);
}

function* describeRow({ row, verdict, text, reasons }: RowReport): Generator<string> {
  yield '';
  yield `${verdicts[verdict][0].padEnd(9)}  ${row === '*' ? '* (no row)' : row}`;
  yield `           ${text}`;
  for (const reason of reasons) yield* describeReason(reason);
}

function* describeReason(entry: ReasonReport): Generator<string> {
  const { kind, method, rejection, reason, requests, clients, sinceMs, lastSeenMs, days } = entry;
  const verb = kind === 'observed' ? 'would have been refused' : 'refused';
  const { count, areMore } = clients;
  const several = `, of ${areMore ? 'more than ' : ''}${count} client${count === 1 ? '' : 's'}`;
  const many = count === 0 ? '' : several;
  const detail = reason === undefined || rejection.endsWith(`-${reason}`) ? '' : ` (${reason})`;
  yield `           - ${method} ${rejection}${detail}: ${requests} ${verb}${many}`;
  yield `             since ${toText(sinceMs)}, last ${toText(lastSeenMs)}; last seven days: ${days.join(' ')}`;
  for (const { application, userAgent, requests: times } of clients.named) {
    const names = [application, userAgent === '' ? 'no User-Agent' : `"${userAgent}"`];
    yield `             ${names.filter((name) => name !== '').join(', ')}: ${times}`;
  }
  if (kind === 'observed') yield `             next (${entry.cause}): ${entry.next} (${entry.more})`;
}
