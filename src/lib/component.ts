/** What the composition root runs: a client, a store, a filter. Started, asked and let go in one loop. */
export interface Component {
  /** Stable: `entity-tags`, say. */
  readonly name: string;
  /** Before the first request; rejects only for what makes a start senseless. */
  start?(): Promise<void>;
  /** How it is, for `/readyz` and the console. Default: well, whatever happens. Asks nobody. */
  health?(): Health;
  /** What it has to say at each scrape. */
  readonly metrics?: readonly MetricSpec[];
  /** Reads its files anew (SIGHUP). */
  reload?(): Promise<void>;
  close?(): Promise<void> | void;
}

export interface Health {
  readonly status: 'ok' | 'degraded' | 'down';
  /** Why it is not well, in words for people, the most pressing first; empty when all is well. */
  readonly reasons: readonly string[];
  /** What else operators want to know of it. */
  readonly details?: readonly HealthDetail[];
}

export interface HealthDetail {
  readonly label: string;
  readonly value: string | number | null;
  /** `time`: milliseconds since the epoch; `ms`: a span. */
  readonly unit?: 'time' | 'ms';
}

/** One number, asked for at each scrape. */
export interface MetricSpec {
  readonly name: string;
  readonly help: string;
  readonly kind: 'gauge' | 'counter';
  /** What the numbers of several workers are together; those of counters are added up. */
  readonly combine: 'sum' | 'min' | 'max';
  value(): number;
}

/** The health of what is well without reasons, and degraded with some. */
export function healthOf(reasons: readonly string[], details?: readonly HealthDetail[]): Health {
  return { status: reasons.length === 0 ? 'ok' : 'degraded', reasons, ...(details && { details }) };
}

export function gauge(
  name: string,
  help: string,
  combine: MetricSpec['combine'],
  value: () => number,
): MetricSpec {
  return { name, help, kind: 'gauge', combine, value };
}

/** What only grows. */
export function counter(name: string, help: string, value: () => number): MetricSpec {
  return { name, help, kind: 'counter', combine: 'sum', value };
}
