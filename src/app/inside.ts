import type { UpstreamActivity } from '../admin/activity.ts';
import type { Readiness } from '../admin/admin-server.ts';
import type { PartState } from '../admin/state-endpoints.ts';
import type { Problem } from '../config/problem.ts';
import type { Eventually } from '../lib/eventually.ts';
import type { Exposition } from '../telemetry/metrics.ts';
import type { UrlResolver } from '../url-resolver/url-resolver.ts';

/** What the admin port asks of the process that serves, or of all workers together. */
export interface Inside {
  readiness(): Eventually<Readiness>;
  /** OpenMetrics text. */
  metrics(): Promise<Exposition>;
  /** Dependencies and features; what the upstream did is known to the asker. */
  parts(upstream: UpstreamActivity): Promise<readonly PartState[]>;
  /** Of followed files other than the list. */
  otherProblems(): Eventually<readonly Problem[]>;
  /** Undefined without URL resolver. */
  readonly purge: UrlResolver['purge'] | undefined;
}
