import { type Component, gauge, type Health, total } from '../lib/component.ts';
import type { Forwarder } from './forwarder.ts';

/** What requests have shown of the upstream. Times are milliseconds since the epoch; 0: never. */
interface UpstreamActivity {
  readonly answers: number;
  readonly lastAnswerMs: number;
  readonly failures: number;
  readonly lastFailureMs: number;
  /** Name of the rejection, and the code of the error behind it, such as `CERT_HAS_EXPIRED`. */
  readonly lastFailure: string;
  /** The first failure after the last answer; 0: it is not failing. */
  readonly failingSinceMs: number;
}

/** Milliseconds for which a failure of the upstream counts as recent. */
const recentMs = 60_000;

/** The upstream as a component. It sends no probes: exchanges show its state. */
export function createUpstreamComponent(
  url: string,
  forwarder: Pick<Forwarder, 'inFlight' | 'queued' | 'close'>,
  activity: UpstreamActivity,
): Component & { health(): Health } {
  return {
    name: 'upstream',
    title: 'Upstream',
    metrics: [
      gauge(
        'shopward_upstream_queue',
        'Requests that wait for an upstream connection.',
        'sum',
        () => forwarder.queued,
      ),
      gauge(
        'shopward_upstream_active_requests',
        'Exchanges with the upstream.',
        'sum',
        () => forwarder.inFlight,
      ),
    ],
    health: () => healthOf(url, forwarder, activity),
    close: () => forwarder.close(),
  };
}

function healthOf(
  url: string,
  { inFlight, queued }: Pick<Forwarder, 'inFlight' | 'queued'>,
  { answers, lastAnswerMs, failures, lastFailureMs, lastFailure, failingSinceMs }: UpstreamActivity,
): Health {
  const isFailing = failingSinceMs > 0;
  const isRecent = failures > 0 && Date.now() - lastFailureMs < recentMs;
  const failed = `the last request failed: ${lastFailure}`;
  const words = {
    down: failed,
    degraded: `it answers, but failed within the last minute: ${lastFailure}`,
    ok: answers === 0 ? 'not asked yet' : 'it answers',
  };
  const status = isFailing ? 'down' : isRecent ? 'degraded' : 'ok';
  return {
    status,
    reasons: isFailing ? [`upstream: ${failed}`] : [],
    text: words[status],
    seenMs: Math.max(lastAnswerMs, lastFailureMs),
    details: [
      { label: 'address', value: url },
      total('in flight', inFlight),
      total('waiting', queued),
      total('answers', answers),
      total('failures', failures),
      { label: 'last answer', value: lastAnswerMs || null, unit: 'time', combine: 'max' },
      { label: 'last failure', value: lastFailureMs || null, unit: 'time', combine: 'max' },
      { label: 'failing since', value: failingSinceMs || null, unit: 'time' },
    ],
  };
}
