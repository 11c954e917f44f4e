import type { Metric, MetricObjectWithValues, MetricValueWithName, Registry } from 'prom-client';

type Labels = Readonly<Record<string, string | number>>;
type Exported = Omit<MetricObjectWithValues<MetricValueWithName<string>>, 'collect'>;

interface Series {
  readonly labels: Labels;
  /** Observations by bucket, each in the first one that holds it; the last is for those beyond all bounds. */
  readonly counts: number[];
  sum: number;
}

export interface DurationHistogramOptions {
  readonly name: string;
  readonly help: string;
  /** Whether series are told apart by route as well. */
  readonly byRoute: boolean;
}

/** Seconds; upper bounds of the buckets. */
const bounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/**
 * A histogram of durations in a registry of prom-client's, which exposes it. The library's own builds labels, a key and
 * a closure at every observation, and an exchange has two: this one finds its series by the values as they are.
 */
export class DurationHistogram {
  readonly name: string;
  readonly help: string;
  readonly type = 'histogram';
  readonly aggregator = 'sum';
  readonly #byRoute: boolean;
  readonly #all: Series[] = [];
  /** Route -> status -> method. All three are closed words of ours but the status, which is 0 to 599. */
  readonly #series = new Map<string, Map<number, Map<string, Series>>>();

  constructor({ name, help, byRoute }: DurationHistogramOptions, registry: Registry) {
    this.name = name;
    this.help = help;
    this.#byRoute = byRoute;
    // The registry asks for name, type and `get` only.
    registry.registerMetric(this as unknown as Metric);
  }

  observe(seconds: number, method: string, status: number, route: string): void {
    const own = this.#byRoute ? route : '';
    const series = this.#series.get(own)?.get(status)?.get(method) ?? this.#start(method, status, own);
    let bucket = 0;
    while (bucket < bounds.length && seconds > (bounds[bucket] as number)) bucket++;
    series.counts[bucket] = (series.counts[bucket] ?? 0) + 1;
    series.sum += seconds;
  }

  /** In the form in which prom-client's own export themselves. */
  async get(): Promise<Exported> {
    const { name, help, type, aggregator } = this;
    const values = this.#all.flatMap((series) => this.#valuesOf(series));
    return { name, help, type: type as never, aggregator, values };
  }

  #start(method: string, status: number, route: string): Series {
    const labels = {
      http_request_method: method,
      ...(this.#byRoute && { http_route: route }),
      http_response_status_code: status,
    };
    const series = { labels, counts: new Array<number>(bounds.length + 1).fill(0), sum: 0 };
    this.#all.push(series);
    const statuses = this.#series.get(route) ?? new Map<number, Map<string, Series>>();
    const methods = statuses.get(status) ?? new Map<string, Series>();
    this.#series.set(route, statuses.set(status, methods.set(method, series)));
    return series;
  }

  #valuesOf({ labels, counts, sum }: Series): MetricValueWithName<string>[] {
    let count = 0;
    const buckets = counts.map((own, bucket) => {
      count += own;
      return {
        labels: { le: bounds[bucket] ?? '+Inf', ...labels },
        value: count,
        metricName: `${this.name}_bucket`,
      };
    });
    return [
      ...buckets,
      { labels, value: sum, metricName: `${this.name}_sum` },
      { labels, value: count, metricName: `${this.name}_count` },
    ];
  }
}
