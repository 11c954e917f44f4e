import type { Problem } from './problem.ts';

/** A client, a store or a filter. The composition root starts, reloads and closes all components in one loop. */
export interface Component {
  /** Stable name, such as `entity-tags`. */
  readonly name: string;
  /** Title of its tile on the console. False: no tile, the reasons appear only on `/readyz`. Default: the name. */
  readonly title?: string | false;
  /** Called before the first request. Rejects only if the proxy must not start. */
  start?(): Promise<void>;
  /** For `/readyz` and the console; answers from memory. Undefined: the component has no health. */
  health?(): Health;
  readonly metrics?: readonly MetricSpec[];
  /** Reads its files again (SIGHUP). */
  reload?(): Promise<void> | void;
  close?(): Promise<void> | void;
}

export interface Health {
  /** `degraded`: it works in part; `down`: requests that need it are refused or fail; `off`: switched off. */
  readonly status: 'ok' | 'degraded' | 'down' | 'off';
  /** For people: why it is degraded or down, the most urgent first; otherwise empty. */
  readonly reasons: readonly string[];
  /** One line for its tile. Default: the first reason, or that it is well. */
  readonly text?: string;
  readonly details?: readonly HealthDetail[];
  readonly problems?: readonly Problem[];
  /** `/readyz` is 503, so that load balancers send requests elsewhere. Default: false. */
  readonly isUnready?: boolean;
  /**
   * Milliseconds since the epoch of the last observation, if health is observed only as requests pass. Of several workers
   * the latest observation then counts. Default: the worst status counts.
   */
  readonly seenMs?: number;
}

export interface HealthDetail {
  readonly label: string;
  readonly value: string | number | null;
  /** `time`: milliseconds since the epoch; `ms`: a duration. */
  readonly unit?: 'time' | 'ms';
  /** How the numbers of several workers are combined. Default: the number of the worker whose status counts. */
  readonly combine?: 'sum' | 'max';
}

/** A metric with one number, which is read at each scrape. */
export interface MetricSpec {
  readonly name: string;
  readonly help: string;
  readonly kind: 'gauge' | 'counter';
  /** How the numbers of several workers are combined; counters are added up. */
  readonly combine: 'sum' | 'min' | 'max';
  /** Labels of this series, if several components share a metric name. Fixed words: no request may add a series. */
  readonly labels?: Readonly<Record<string, string>>;
  value(): number;
}

/** The log of components; nothing of a request is ever written to it. */
export interface ComponentLog {
  info(fields: object, text: string): void;
  warn(fields: object, text: string): void;
  error(fields: object, text: string): void;
  debug(fields: object, text: string): void;
}

/** `ok` without reasons, `degraded` with some. */
export function healthOf(reasons: readonly string[], more?: Partial<Health>): Health {
  return { status: reasons.length === 0 ? 'ok' : 'degraded', reasons, ...more };
}

/** A detail whose numbers are added up over all workers. */
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

export function counter(name: string, help: string, value: () => number): MetricSpec {
  return { name, help, kind: 'counter', combine: 'sum', value };
}
