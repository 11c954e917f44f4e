import type { UpstreamActivity } from '../admin/activity.ts';
import type { Readiness } from '../admin/admin-server.ts';
import type { PartState } from '../admin/state-endpoints.ts';
import type { Secrets } from '../app/watched-secrets.ts';
import type { Problem } from '../config/problem.ts';
import type { FileBytes } from '../config/read-file.ts';
import type { Config } from '../config/schema.ts';
import type { ExchangeRecord } from '../telemetry/exchange-record.ts';
import type { MetricValues } from '../telemetry/metrics.ts';
import type { Purge } from '../url-resolver/purge/purge.ts';

/**
 * All that a worker needs. It is handed over, not read anew: a worker that replaces another one runs under the same
 * configuration, whatever stands in the files by then.
 */
export interface WorkerStart {
  /** Counts from 1; one that replaces another takes its number. */
  readonly number: number;
  readonly config: Config;
  /** Text of the list in force, and the last content of its file where that was refused. */
  readonly protectedList: string;
  readonly refusedList: FileBytes | undefined;
  readonly secrets: Secrets;
}

/** What the primary asks of a worker. */
export interface WorkerCalls {
  /** Resolves to the public URL once requests are served. */
  start(start: WorkerStart): Promise<string>;
  /** Drains; the process ends behind it. */
  stop(graceMs: number | undefined): void;
  /** Answered by whoever's event loop turns. */
  ping(): true;
  reload(): Promise<void>;
  list(content: FileBytes): Promise<void>;
  secrets(secrets: Secrets): Promise<void>;
  readiness(): Readiness | Promise<Readiness>;
  metrics(): Promise<MetricValues>;
  parts(upstream: UpstreamActivity): Promise<readonly PartState[]>;
  otherProblems(): readonly Problem[] | Promise<readonly Problem[]>;
  purge(which: Purge): Promise<'purged' | 'unavailable' | undefined>;
}

/** What a worker tells the primary. */
export interface PrimaryCalls {
  /** Exchanges since the last time, the oldest first. */
  exchanges(records: readonly ExchangeRecord[]): void;
  /** It met a fault, and only finishes what is in flight: another one is needed now. */
  failing(): void;
}
