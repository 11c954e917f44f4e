import type { KeySource } from '../access/key-source.ts';
import type { UpstreamActivity } from '../admin/activity.ts';
import type { Readiness } from '../admin/admin-server.ts';
import type { PartState } from '../admin/incidents.ts';
import type { KeyDescription, SystemState } from '../admin/system-endpoints.ts';
import { certificateNotice } from '../config/named-files.ts';
import type { Eventually } from '../lib/eventually.ts';
import { formatProblem, type Problem } from '../lib/problem.ts';
import type { TokenCensus } from '../refresh-tokens/census.ts';
import { logOutput } from '../telemetry/log.ts';
import type { Exposition } from '../telemetry/metrics.ts';
import type { UrlResolver } from '../url-resolver/url-resolver.ts';
import { describeParts, type PartSources } from './admin-parts.ts';
import { keyFaultText } from './key-fault-text.ts';
import type { RefreshTokensPart } from './refresh-tokens.ts';
import type { WatchedList } from './watched-list.ts';
import type { SecretsInForce } from './watched-secrets.ts';

/** What the admin port asks of the process that serves, or of all workers together. */
export interface ProcessStatus {
  readiness(): Eventually<Readiness>;
  /** OpenMetrics text. */
  metrics(): Promise<Exposition>;
  /** Dependencies and features; what the upstream did is known to the asker. */
  parts(upstream: UpstreamActivity): Promise<readonly PartState[]>;
  /** Of followed files other than the list. */
  otherProblems(): Eventually<readonly Problem[]>;
  /** Undefined without URL resolver. */
  readonly purge: UrlResolver['purge'] | undefined;
  /** Processes, keys, and who shares the store. */
  system(): Promise<SystemState>;
  /** Undefined where refresh tokens are not watched. */
  readonly census: (() => Promise<TokenCensus | undefined>) | undefined;
}

export interface ProcessStatusSources extends PartSources {
  readonly list: Pick<WatchedList, 'problems'>;
  readonly tokens: Pick<RefreshTokensPart, 'census'> | false;
  readonly sharing: (() => Promise<number | null>) | undefined;
  readonly secrets: Pick<SecretsInForce, 'problems' | 'certificateEndMs'>;
  isDraining(): boolean;
  /** Why clients may not be taken. */
  connectionProblems(): readonly string[];
}

/** The answers of this process. */
export function createProcessStatus(sources: ProcessStatusSources): ProcessStatus {
  const { keys, list, parts, metrics, resolver, secrets, tokens } = sources;
  const startedMs = Date.now();
  const keyDescriptions = describeKeys(keys);
  return {
    readiness(): Readiness {
      const keyStatus = keys.status();
      const keyCount = keyStatus.keys;
      const keyFault = keyFaultText(keyStatus);
      const draining = sources.isDraining();
      const reasons: string[] = [];
      if (draining) reasons.push('draining');
      if (keyCount === 0) reasons.push(`no keys for access tokens yet: ${keyFault ?? 'loading'}`);
      else if (keyFault) reasons.push(`keys were not refreshed, the last good ones are used: ${keyFault}`);
      for (const problem of list.problems()) reasons.push(`protected list: ${formatProblem(problem)}`);
      for (const problem of secrets.problems) reasons.push(`secrets: ${formatProblem(problem)}`);
      const notice = certificateNotice(secrets.certificateEndMs ?? Number.NaN, Date.now());
      if (notice) reasons.push(`listen.tls: ${notice}`);
      const { fault } = logOutput();
      if (fault) reasons.push(`log: ${logFaultText(fault)}`);
      reasons.push(...sources.connectionProblems());
      for (const part of parts) reasons.push(...(part.health?.().reasons ?? []));
      return { ready: !draining && keyCount > 0, reasons };
    },
    metrics: metrics.expose,
    parts: (upstream) => describeParts(sources, upstream),
    otherProblems: () => [
      ...secrets.problems,
      ...(resolver ? (resolver.resolver.stats().file?.problems ?? []) : []),
    ],
    purge: resolver ? (which) => resolver.resolver.purge(which) : undefined,
    system: async () => ({
      processes: [{ pid: process.pid, startedMs, memoryBytes: process.memoryUsage.rss() }],
      workers: 1,
      keys: keyDescriptions(),
      sharing: (await sources.sharing?.()) ?? null,
    }),
    census: tokens ? () => tokens.census() : undefined,
  };
}

/** Lines are dropped, and why. */
function logFaultText(fault: string): string {
  if (fault === 'EAGAIN') return 'its reader takes no lines, some are lost';
  if (fault === 'EPIPE') return 'its reader is gone (EPIPE), all lines are lost';
  return `lines cannot be written (${fault}), some are lost`;
}

/** Describes the keys in use, with the time since when each has been; what is not public of a key stays out. */
function describeKeys(source: Pick<KeySource, 'current' | 'onChange' | 'status'>): () => KeyDescription[] {
  const seen = new Map<string, number>();
  const note = () => {
    const before = new Map(seen);
    seen.clear();
    for (const { fingerprint } of source.current()) {
      seen.set(fingerprint, before.get(fingerprint) ?? Date.now());
    }
  };
  source.onChange(note);
  return () => {
    note();
    const isSecret = source.status().kind === 'secret';
    return source.current().map(({ kid, algorithms, fingerprint }) => ({
      kid: kid ?? null,
      algorithms,
      fingerprint: isSecret ? null : fingerprint.slice(0, 12),
      sinceMs: seen.get(fingerprint) ?? Date.now(),
    }));
  };
}
