import type { RejectionName } from '../http/rejection.ts';
import { type Component, gauge, type Health, type MetricSpec, total } from '../lib/component.ts';
import type { Forwarder } from './forwarder.ts';

/** How the upstream does, as exchanges have shown it. Times are milliseconds since the epoch; 0: never. */
export class UpstreamActivity {
  answers = 0;
  lastAnswerMs = 0;
  failures = 0;
  lastFailureMs = 0;
  lastFailure: RejectionName | undefined = undefined;
  /** The first failure after the last answer; 0: it is not failing. */
  failingSinceMs = 0;

  /** Of each exchange that has ended; cheap. */
  note(record: { readonly decision: string; readonly rejection?: RejectionName | undefined }, nowMs: number) {
    if (record.rejection?.startsWith('upstream-')) {
      this.failures++;
      this.failingSinceMs ||= nowMs;
      this.lastFailureMs = nowMs;
      this.lastFailure = record.rejection;
    } else if (record.decision === 'forwarded') {
      this.answers++;
      this.lastAnswerMs = nowMs;
      this.failingSinceMs = 0;
    }
  }
}

/** How long a failure of the upstream still counts as news. */
const recentMs = 60_000;

/** The way to the shop, of which nobody is asked: exchanges show how it is. */
export class UpstreamComponent implements Component {
  readonly name = 'upstream';
  readonly title = 'Upstream';
  readonly activity = new UpstreamActivity();
  readonly metrics: readonly MetricSpec[];
  readonly close: () => Promise<void>;
  readonly #url: string;
  readonly #forwarder: Pick<Forwarder, 'inFlight' | 'queued'>;

  constructor(url: string, forwarder: Pick<Forwarder, 'inFlight' | 'queued' | 'close'>) {
    this.#url = url;
    this.#forwarder = forwarder;
    this.close = () => forwarder.close();
    this.metrics = [
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
    ];
  }

  health(): Health {
    const { answers, lastAnswerMs, failures, lastFailureMs, lastFailure, failingSinceMs } = this.activity;
    const isFailing = failingSinceMs > 0;
    const isRecent = failures > 0 && Date.now() - lastFailureMs < recentMs;
    const failed = `the last request failed: ${lastFailure}`;
    const words = {
      down: failed,
      degraded: `it answers, but failed within the last minute: ${lastFailure}`,
      ok: answers === 0 ? 'not asked yet' : 'it answers',
    };
    const status = isFailing ? 'down' : isRecent ? 'degraded' : 'ok';
    const { inFlight, queued } = this.#forwarder;
    return {
      status,
      reasons: isFailing ? [`upstream: ${failed}`] : [],
      text: words[status],
      seenMs: Math.max(lastAnswerMs, lastFailureMs),
      details: [
        { label: 'address', value: this.#url },
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
}
