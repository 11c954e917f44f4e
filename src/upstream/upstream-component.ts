import type { RejectionName } from '../http/rejection.ts';
import { type Component, gauge, type Health, type MetricSpec, total } from '../lib/component.ts';
import type { Forwarder } from './forwarder.ts';

/** Why a TLS handshake failed, by the code of the error: causes that an operator can remove. */
const tlsFaults: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: "the shop's certificate has expired",
  CERT_NOT_YET_VALID: "the shop's certificate is not valid yet",
  CERT_REVOKED: "the shop's certificate was revoked",
  ERR_TLS_CERT_ALTNAME_INVALID: "the shop's certificate is for another name (upstream.tls.serverName)",
  ...Object.fromEntries(
    [
      'DEPTH_ZERO_SELF_SIGNED_CERT',
      'SELF_SIGNED_CERT_IN_CHAIN',
      'UNABLE_TO_GET_ISSUER_CERT',
      'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
      'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    ].map((code) => [code, "the shop's certificate is of no authority that is trusted (upstream.tls.ca)"]),
  ),
  ...Object.fromEntries(
    [
      'ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED',
      'ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE',
      'ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE',
      'ERR_SSL_SSLV3_ALERT_CERTIFICATE_EXPIRED',
      'ERR_SSL_TLSV1_ALERT_UNKNOWN_CA',
    ].map((code) => [code, 'the shop takes no connection with this client certificate (upstream.tls.cert)']),
  ),
  ERR_SSL_WRONG_VERSION_NUMBER: 'the shop does not speak TLS there',
  ERR_SSL_PACKET_LENGTH_TOO_LONG: 'the shop does not speak TLS there',
};

/** The state of the upstream, as exchanges have shown it. Times are milliseconds since the epoch; 0: never. Exported for its tests. */
export class UpstreamActivity {
  answers = 0;
  lastAnswerMs = 0;
  failures = 0;
  lastFailureMs = 0;
  lastFailure: RejectionName | undefined = undefined;
  /** Code of the TLS error of the last failure. */
  tlsFault: string | undefined = undefined;
  /** The first failure after the last answer; 0: it is not failing. */
  failingSinceMs = 0;

  readonly #onTlsFault: OnTlsFault | undefined;
  #toldFault = '';
  #toldMs = 0;

  constructor(onTlsFault?: OnTlsFault) {
    this.#onTlsFault = onTlsFault;
  }

  /** Called for each exchange that has ended; cheap. */
  note(record: Ended, nowMs: number) {
    if (record.rejection?.startsWith('upstream-')) {
      this.#noteTlsFault(record.fault ?? '', nowMs);
      this.failures++;
      this.failingSinceMs ||= nowMs;
      this.lastFailureMs = nowMs;
      this.lastFailure = record.rejection;
    } else if (record.decision === 'forwarded') {
      this.answers++;
      this.lastAnswerMs = nowMs;
      this.failingSinceMs = 0;
      this.tlsFault = undefined;
    }
  }

  /** What failed, in words for people. */
  get lastFailureText(): string {
    const { tlsFault = '', lastFailure } = this;
    const why = tlsFaults[tlsFault];
    return why === undefined ? `${lastFailure}` : `${lastFailure} (${tlsFault}): ${why}`;
  }

  /** Logged once a minute, or when the error changes. */
  #noteTlsFault(fault: string, nowMs: number): void {
    const text = tlsFaults[fault];
    this.tlsFault = text === undefined ? undefined : fault;
    if (text === undefined || (fault === this.#toldFault && nowMs - this.#toldMs < recentMs)) return;
    this.#toldFault = fault;
    this.#toldMs = nowMs;
    this.#onTlsFault?.(fault, text);
  }
}

type OnTlsFault = (fault: string, text: string) => void;

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
  readonly activity: UpstreamActivity;
  readonly metrics: readonly MetricSpec[];
  readonly close: () => Promise<void>;
  readonly #url: string;
  readonly #forwarder: Pick<Forwarder, 'inFlight' | 'queued'>;

  constructor(
    url: string,
    forwarder: Pick<Forwarder, 'inFlight' | 'queued' | 'close'>,
    onTlsFault?: OnTlsFault,
  ) {
    this.activity = new UpstreamActivity(onTlsFault);
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
