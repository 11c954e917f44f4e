import type { RejectionName } from '../http/rejection.ts';
import { type Component, gauge, type Health, type MetricSpec, total } from '../lib/component.ts';
import type { Forwarder } from './forwarder.ts';

/** The state of the upstream, as exchanges have shown it. Times are milliseconds since the epoch; 0: never. Exported for its tests. */
export class UpstreamActivity {
  answers = 0;
  lastAnswerMs = 0;
  failures = 0;
  lastFailureMs = 0;
  lastFailure: RejectionName | undefined = undefined;
  /** Code of the error behind the last failure, such as `CERT_HAS_EXPIRED`. */
  lastFault: string | undefined = undefined;
  /** The first failure after the last answer; 0: it is not failing. */
  failingSinceMs = 0;

  /** Called for each exchange that has ended; cheap. */
  note(record: Ended, nowMs: number) {
    if (record.rejection?.startsWith('upstream-')) {
      this.failures++;
      this.failingSinceMs ||= nowMs;
      this.lastFailureMs = nowMs;
      this.lastFailure = record.rejection;
      this.lastFault = record.fault;
    } else if (record.decision === 'forwarded') {
      this.answers++;
      this.lastAnswerMs = nowMs;
      this.failingSinceMs = 0;
    }
  }

  /** What failed, for people. */
  get lastFailureText(): string {
    return this.lastFault === undefined ? `${this.lastFailure}` : `${this.lastFailure} (${this.lastFault})`;
  }
}

interface Ended {
  readonly decision: string;
  readonly rejection?: RejectionName | undefined;
  /** Code of what broke. */
  readonly fault?: string | undefined;
}

/** Milliseconds for which a failure of the upstream counts as recent. */
const recentMs = 60_000;

/** The upstream as a component. It sends no probes: exchanges show its state. */
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
    const { answers, lastAnswerMs, failures, lastFailureMs, lastFailureText, failingSinceMs } = this.activity;
    const isFailing = failingSinceMs > 0;
    const isRecent = failures > 0 && Date.now() - lastFailureMs < recentMs;
    const failed = `the last request failed: ${lastFailureText}`;
    const words = {
      down: failed,
      degraded: `it answers, but failed within the last minute: ${lastFailureText}`,
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
