import type { Problem } from './problem.ts';

/** What the composition root runs: a client, a store, a filter. Started, asked and let go in one loop. */
export interface Component {
  /** Stable: `entity-tags`, say. */
  readonly name: string;
  /** Of its tile on the console; default: its name. False: it has no tile, `/readyz` alone speaks of it. */
  readonly title?: string | false;
  /** Before the first request; rejects only for what makes a start senseless. */
  start?(): Promise<void>;
  /** How it is, for `/readyz` and the console. Default: well, whatever happens. Asks nobody. */
  health?(): Health;
  /** What it has to say at each scrape. */
  readonly metrics?: readonly MetricSpec[];
  /** Reads its files anew (SIGHUP). */
  reload?(): Promise<void> | void;
  close?(): Promise<void> | void;
}

export interface Health {
  /** `down`: what needs it is refused or fails; `off`: it is switched off. */
  readonly status: 'ok' | 'degraded' | 'down' | 'off';
  /** Why it is not well, in words for people, the most pressing first; empty when all is well. */
  readonly reasons: readonly string[];
  /** The same in one line for its tile. Default: the first reason, or that it is well. */
  readonly text?: string;
  /** What else operators want to know of it. */
  readonly details?: readonly HealthDetail[];
  /** Where the files that it follows are wrong. */
  readonly problems?: readonly Problem[];
  /** Clients are better sent elsewhere: `/readyz` says 503. Default: false. */
  readonly isUnready?: boolean;
  /**
   * Milliseconds since the epoch: when this was seen, where it is only seen in passing. Of several workers the latest
   * word counts then. Default: the worst one counts.
   */
  readonly seenMs?: number;
}

export interface HealthDetail {
  readonly label: string;
  readonly value: string | number | null;
  /** `time`: milliseconds since the epoch; `ms`: a span. */
  readonly unit?: 'time' | 'ms';
  /** What the numbers of several workers are together. Default: that of the worker whose word counts. */
  readonly combine?: 'sum' | 'max';
}

/** One number, asked for at each scrape. */
export interface MetricSpec {
  readonly name: string;
  readonly help: string;
  readonly kind: 'gauge' | 'counter';
  /** What the numbers of several workers are together; those of counters are added up. */
  readonly combine: 'sum' | 'min' | 'max';
  /** Of this series, where several components have a metric of one name. Closed words of ours alone. */
  readonly labels?: Readonly<Record<string, string>>;
  value(): number;
}

/** Where a component says what people should know of; never anything of a request. */
export interface ComponentLog {
  info(fields: object, text: string): void;
  warn(fields: object, text: string): void;
  error(fields: object, text: string): void;
  debug(fields: object, text: string): void;
}

/** The health of what is well without reasons, and degraded with some. */
export function healthOf(reasons: readonly string[], more?: Partial<Health>): Health {
  return { status: reasons.length === 0 ? 'ok' : 'degraded', reasons, ...more };
}

/** A detail that workers have of their own, each: their numbers are added up. */
export function total(label: string, value: number): HealthDetail {
  return { label, value, combine: 'sum' };
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
