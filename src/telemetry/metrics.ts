import {
  AggregatorRegistry,
  Counter,
  collectDefaultMetrics,
  Gauge,
  type Metric,
  type MetricValueWithName,
  Registry,
} from 'prom-client';
import type { CanonicalRequest } from '../http/canonical-request.ts';
import type { Sender } from '../http/rejection.ts';
import { gauge, type HealthDetail, type MetricSpec, total } from '../lib/component.ts';
import { DecisionCounts } from './decision-counts.ts';
import type { ExchangeRecord } from './exchange-record.ts';

/** All values of one process, in the form that is sent to the primary. */
export type MetricValues = Awaited<ReturnType<Registry['getMetricsAsJSON']>>;

export type Metrics = ReturnType<typeof createMetrics>;

/** Combines the values of several processes into one text. */
export function exposeAggregated(processes: readonly MetricValues[]): Promise<string> {
  return combine(processes).metrics();
}

/** The version, and the start time, which shows a process that restarts again and again. */
export function programMetrics(version: string, startedMs: number): MetricSpec[] {
  return [
    {
      ...gauge('shopward_build_info', 'The version of shopward and of Node.', 'min', () => 1),
      labels: { version, node: process.version },
    },
    gauge('shopward_start_time_seconds', 'When this program was started.', 'min', () => startedMs / 1000),
  ];
}

/** Adds up counters and histograms of ended processes: if the sums fell, rates would jump. Gauges are dropped. */
export function combineCounts(processes: readonly MetricValues[]): Promise<MetricValues> {
  return combine(processes.map((values) => values.filter(isCount))).getMetricsAsJSON();
}

function combine(processes: readonly MetricValues[]): Registry {
  return AggregatorRegistry.aggregate([...processes]) as Registry;
}

/** prom-client's types say number, but its values are strings. */
function isCount({ type }: MetricValues[number]): boolean {
  return String(type) === 'counter' || String(type) === 'histogram';
}

/**
 * Creates the metrics of a process: OpenTelemetry's HTTP names in Prometheus spelling. `ofProcess`: with Node's own metrics
 * and the decisions; a primary takes those of its workers.
 */
export function createMetrics({ ofProcess = true, forRollout = false } = {}) {
  const decisions = new DecisionCounts({ forRollout });
  const registry = new Registry();
  if (ofProcess) collectDefaultMetrics({ register: registry });
  const observeDurations = createExchangeMetrics(registry);
  if (ofProcess) exposeRejections(registry, decisions);
  const events = createEvents(registry);
  const register = createRegister(registry);
  return {
    decisions,
    /** Counts an exchange, also in the decision counts. */
    observeExchange(record: ExchangeRecord, nowMs: number, request?: CanonicalRequest, sender?: Sender) {
      observeDurations(record);
      decisions.note(record, nowMs, request, sender);
    },
    /** Counts an event of a feature. Both names are fixed words, so no request can add a series. */
    countEvent(feature: string, event: string) {
      const own = events(feature);
      own.set(event, (own.get(event) ?? 0) + 1);
    },
    /** Counts of a feature's events since the start, for its tile. */
    eventDetails: (feature: string): HealthDetail[] =>
      [...events(feature)].map(([name, n]) => total(name.replaceAll('-', ' '), n)),
    /** Adds metrics whose values are read at each scrape. */
    register(...specs: readonly MetricSpec[]) {
      for (const spec of specs) register(spec);
    },
    /** The metrics in the text format of Prometheus. */
    expose: () => registry.metrics(),
    values: () => registry.getMetricsAsJSON(),
  };
}

type Labels = Readonly<Record<string, string | number>>;

/** Exposes a metric whose series are computed at each scrape, so that counting costs only an addition. */
function expose(
  registry: Registry,
  { name, help, kind, combine }: Pick<MetricSpec, 'name' | 'help' | 'kind' | 'combine'>,
  labelNames: readonly string[],
  read: () => Iterable<readonly [labels: Labels, value: number]>,
): void {
  const common = { name, help, labelNames: [...labelNames], registers: [registry] };
  if (kind === 'gauge') {
    new Gauge({
      ...common,
      aggregator: combine,
      collect() {
        for (const [labels, value] of read()) this.set(labels, value);
      },
    });
  } else {
    new Counter({
      ...common,
      name: `${name}_total`,
      collect() {
        this.reset();
        for (const [labels, value] of read()) this.inc(labels, value);
      },
    });
  }
}

const counted = { kind: 'counter', combine: 'sum' } as const;

function createEvents(registry: Registry): (feature: string) => Map<string, number> {
  const features = new Map<string, Map<string, number>>();
  const about = { name: 'shopward_events', help: 'Events of the features.', ...counted };
  expose(registry, about, ['feature', 'event'], function* () {
    for (const [feature, events] of features)
      for (const [event, count] of events) yield [{ feature, event }, count];
  });
  return (feature) => {
    const known = features.get(feature) ?? new Map<string, number>();
    if (known.size === 0) features.set(feature, known);
    return known;
  };
}

/** Specs with the same name are series of one metric and differ in their labels. */
function createRegister(registry: Registry): (spec: MetricSpec) => void {
  const known = new Map<string, MetricSpec[]>();
  return (spec) => {
    const series = known.get(spec.name) ?? [];
    series.push(spec);
    if (series.length > 1) return;
    known.set(spec.name, series);
    expose(registry, spec, Object.keys(spec.labels ?? {}), () =>
      series.map((one) => [one.labels ?? {}, one.value()]),
    );
  };
}

function createExchangeMetrics(registry: Registry): (record: ExchangeRecord) => void {
  const observe = createHistogram(
    registry,
    'http_server_request_duration_seconds',
    'Time from the request head to the end of the response.',
    true,
  );
  const observeUpstream = createHistogram(
    registry,
    'http_client_request_duration_seconds',
    'Time that the upstream took for forwarded requests.',
    false,
  );
  return ({ method, status, route, durationMs, upstreamMs, rejection }) => {
    observe(durationMs / 1000, method, status, route);
    // A refusal has shopward's status: the status of the shop, if it answered, is not known.
    const ofShop = rejection === undefined ? status : 0;
    if (upstreamMs !== undefined) observeUpstream(upstreamMs / 1000, method, ofShop, route);
  };
}

/** Adds up the reasons of all rows: label values are fixed words. */
function exposeRejections(registry: Registry, decisions: DecisionCounts): void {
  const help = 'Refusals by name; observed ones were forwarded all the same.';
  const labels = ['rejection', 'reason', 'enforced'];
  expose(registry, { name: 'shopward_rejections', help, ...counted }, labels, function* () {
    for (const { reasons } of decisions.rows())
      for (const { kind, rejection, reason = '', requests } of reasons.values())
        yield [{ rejection, reason, enforced: String(kind !== 'observed') }, requests];
  });
}

interface Series {
  readonly labels: Labels;
  /** Observations by bucket, not cumulative; the last bucket is above all bounds. */
  readonly counts: number[];
  sum: number;
}

/** Seconds; upper bounds of the buckets. */
const bounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/**
 * A histogram of durations for prom-client's registry, with the label `http_route` if `byRoute` is true. prom-client's own class
 * allocates labels, a key and a closure at every observation, of which each exchange has two; this one finds its series by the
 * values themselves.
 */
function createHistogram(registry: Registry, name: string, help: string, byRoute: boolean) {
  /** By route, status and method. All are bounded: templates of rows, 0 to 599, known methods. */
  const all = new Map<string, Series>();
  const start = (key: string, method: string, status: number, route: string): Series => {
    const labels = {
      http_request_method: method,
      ...(byRoute && { http_route: route }),
      http_response_status_code: status,
    };
    const series = { labels, counts: new Array<number>(bounds.length + 1).fill(0), sum: 0 };
    all.set(key, series);
    return series;
  };
  const about = { name, help, type: 'histogram', aggregator: 'sum' };
  const get = async () => ({
    ...about,
    values: [...all.values()].flatMap((series) => valuesOf(name, series)),
  });
  // The registry uses only `name`, `type` and `get`.
  registry.registerMetric({ ...about, get } as unknown as Metric);
  return (seconds: number, method: string, status: number, route: string): void => {
    const key = byRoute ? `${status} ${method} ${route}` : `${status} ${method}`;
    const series = all.get(key) ?? start(key, method, status, route);
    let bucket = 0;
    while (bucket < bounds.length && seconds > (bounds[bucket] as number)) bucket++;
    series.counts[bucket] = (series.counts[bucket] ?? 0) + 1;
    series.sum += seconds;
  };
}

function valuesOf(name: string, { labels, counts, sum }: Series): MetricValueWithName<string>[] {
  let count = 0;
  const buckets = counts.map((own, bucket) => {
    count += own;
    return {
      labels: { le: bounds[bucket] ?? '+Inf', ...labels },
      value: count,
      metricName: `${name}_bucket`,
    };
  });
  return [
    ...buckets,
    { labels, value: sum, metricName: `${name}_sum` },
    { labels, value: count, metricName: `${name}_count` },
  ];
}
