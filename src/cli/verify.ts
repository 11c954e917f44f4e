import { randomBytes } from 'node:crypto';
import { trimEndWhile } from '../http/field-list.ts';
import { buildRejections } from '../http/rejection.ts';
import {
  badConfiguration,
  badUsage,
  type CommandIo,
  type CommonChoice,
  processIo,
  textTable,
} from './command-io.ts';
import { loadConfiguration } from './load-configuration.ts';
import { checkReach, checkRows, checkSpellings, checkTokens } from './verify/access-checks.ts';
import { checkClock, checkPublishedList, checkShop } from './verify/endpoint-checks.ts';
import { createProbeClient, type Deployment } from './verify/probe-client.ts';
import { checkTags } from './verify/tag-checks.ts';
import { type Check, createRefusalTest, type Verification } from './verify/verification.ts';

/** Exported for its tests. */
export interface VerifyChoice extends CommonChoice {
  /** An access token. Unlike this option, `SHOPWARD_TOKEN` is not visible in the list of processes. */
  readonly token?: string;
  /** Members of tracked resources. */
  readonly resource?: readonly string[];
  /** Whether this machine may reach the shop. */
  readonly inside?: boolean;
  /** Seconds for one request. Default 10. */
  readonly timeout?: string;
  /** Seconds for the whole run. Default 120. */
  readonly deadline?: string;
}

/**
 * Checks a running deployment from outside, as clients see it, against the local configuration. Exit code 0 when every check
 * passed, 1 when one failed, 2 on bad usage, 78 for a configuration with problems.
 */
export async function runVerify(
  url: string,
  options: VerifyChoice,
  io: CommandIo = processIo,
): Promise<number> {
  const deployment = parseDeployment(url);
  const timeoutMs = milliseconds(options.timeout ?? '10');
  const deadlineMs = milliseconds(options.deadline ?? '120');
  if (deployment === undefined || !(timeoutMs > 0 && deadlineMs > 0)) {
    io.err(
      'give an http:// or https:// URL without user and query; --timeout and --deadline are seconds, such as 10',
    );
    return badUsage;
  }
  const loaded = await loadConfiguration(options.config, io);
  if (loaded === undefined) return badConfiguration;

  const client = createProbeClient(deployment, timeoutMs, AbortSignal.timeout(deadlineMs));
  const verification: Verification = {
    client,
    config: loaded.config,
    list: loaded.list,
    isRefused: createRefusalTest(loaded),
    rejections: buildRejections(loaded.config.rejections),
    id: `shopward-verify-${randomBytes(6).toString('hex')}`,
    token: options.token ?? io.env.SHOPWARD_TOKEN,
  };
  try {
    const shop = { isInside: options.inside === true, timeoutMs };
    const checks = [
      ...(await checkAll(verification, options)),
      ...(await checkShop(verification, deployment, shop)),
    ];
    const counts = countOutcomes(checks);
    const ok = counts.failed === 0;
    // Stable: keys are only ever added.
    if (options.json) io.out(JSON.stringify({ url, ok, counts, checks }, null, 2));
    else io.out(reportText(url, checks).join('\n'));
    return ok ? 0 : 1;
  } finally {
    client.close();
  }
}

async function checkAll(verification: Verification, options: VerifyChoice): Promise<Check[]> {
  const reach = await checkReach(verification);
  if (reach.outcome === 'failed') return [reach];
  const rows = await checkRows(verification);
  const areReadsRefused =
    rows.some(({ outcome }) => outcome === 'ok') && rows.every(({ outcome }) => outcome !== 'failed');
  return [
    ...(await checkClock(verification)),
    ...rows,
    ...(await checkSpellings(verification, { areReadsRefused })),
    ...(await checkTokens(verification)),
    ...(await checkPublishedList(verification)),
    ...(await checkTags(verification, options.resource ?? [])),
  ];
}

function parseDeployment(url: string): Deployment | undefined {
  const match = /^(https?):\/\/(\[[0-9a-f:.]+\]|[^\s/:@?#[\]]+)(?::(\d{1,5}))?(\/[^\s?#]*)?$/i.exec(url);
  if (match === null) return undefined;
  const [, scheme = '', host = '', port, path = ''] = match;
  const isTls = scheme.toLowerCase() === 'https';
  return {
    scheme: isTls ? 'https' : 'http',
    host: host.replace(/^\[|\]$/g, ''),
    port: port === undefined ? (isTls ? 443 : 80) : Number(port),
    prefix: trimEndWhile(path, isSlash),
  };
}

function isSlash(code: number): boolean {
  return code === 0x2f;
}

function milliseconds(seconds: string): number {
  return Math.round(Number(seconds) * 1000);
}

function countOutcomes(checks: readonly Check[]) {
  const count = (outcome: Check['outcome']) => checks.filter((check) => check.outcome === outcome).length;
  return { ok: count('ok'), failed: count('failed'), skipped: count('skipped') };
}

/** A table of all checks, advice for those that failed, then the counts. */
function reportText(url: string, checks: readonly Check[]): string[] {
  const rows = checks.map(({ outcome, area, name, expected, got, advice }) => [
    outcome === 'failed' ? 'FAILED' : outcome,
    area,
    name,
    outcome === 'failed' ? `${got}, expected ${expected}` : outcome === 'skipped' ? (advice ?? '') : got,
  ]);
  const advice = adviceText(checks);
  const { ok, failed, skipped } = countOutcomes(checks);
  return [
    ...textTable(rows),
    ...(advice.length > 0 ? ['', ...advice, ''] : []),
    `${url}: ${ok} ok, ${failed} failed, ${skipped} skipped`,
  ];
}

/** Advice for the failed checks: each text once, with the checks that it concerns. */
function adviceText(checks: readonly Check[]): string[] {
  const failed = checks.filter(({ outcome, advice }) => outcome === 'failed' && advice !== undefined);
  const byAdvice = Map.groupBy(failed, ({ advice }) => advice);
  return [...byAdvice].map(([advice, [first, ...rest]]) =>
    rest.length === 0 ? `${first?.name}: ${advice}` : `${first?.name} and ${rest.length} more: ${advice}`,
  );
}
