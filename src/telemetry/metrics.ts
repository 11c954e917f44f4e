import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { ExchangeRecord } from './exchange-record.ts';

/** A gauge, or a counter kept elsewhere, whose value is asked for at each scrape. */
export interface Observed {
  readonly name: string;
  readonly help: string;
  value(): number;
}

export interface Metrics {
  observeExchange(record: ExchangeRecord): void;
  /** Counts an event of a feature: closed words only, so that no request can add a series. */
  countEvent(feature: string, event: string): void;
  /** Counts of a feature's events since the start. */
  eventCounts(feature: string): Promise<Readonly<Record<string, number>>>;
  registerGauge(gauge: Observed): void;
  registerCounter(counter: Observed): void;
  /** OpenMetrics text. */
  expose(): Promise<{ contentType: string; body: string }>;
}

/** OpenTelemetry's HTTP names in OpenMetrics spelling; the route is a row's template, never a path. */
export function createMetrics(): Metrics {
  const registry = new Registry<typeof Registry.OPENMETRICS_CONTENT_TYPE>();
  registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
  collectDefaultMetrics({ register: registry as unknown as Registry });
  const registers = [registry as unknown as Registry];

  const duration = new Histogram({
    name: 'http_server_request_duration_seconds',
    help: 'Time from the request head to the end of the response.',
    labelNames: ['http_request_method', 'http_route', 'http_response_status_code'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
    registers,
  });
  const upstream = new Histogram({
    name: 'http_client_request_duration_seconds',
    help: 'Time that the upstream took for forwarded requests.',
    labelNames: ['http_request_method', 'http_response_status_code'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
    registers,
  });
  const refused = new Counter({
    name: 'shopward_rejections',
    help: 'Refusals by name; observed ones were forwarded all the same.',
    labelNames: ['rejection', 'reason', 'enforced'],
    registers,
  });
  const events = new Counter({
    name: 'shopward_events',
    help: 'Events of the features, by closed words.',
    labelNames: ['feature', 'event'],
    registers,
  });

  return {
    observeExchange(record) {
      duration.observe(
        {
          http_request_method: record.method,
          http_route: record.route,
          http_response_status_code: record.status,
        },
        record.durationMs / 1000,
      );
      if (record.upstreamMs !== undefined) {
        upstream.observe(
          { http_request_method: record.method, http_response_status_code: record.status },
          record.upstreamMs / 1000,
        );
      }
      const rejection = record.rejection ?? record.observed;
      if (rejection) {
        const enforced = record.rejection ? 'true' : 'false';
        refused.inc({ rejection, reason: record.reason ?? '', enforced });
      }
    },
    countEvent: (feature, event) => events.inc({ feature, event }),
    async eventCounts(feature) {
      const { values } = await events.get();
      const own = values.filter(({ labels }) => labels.feature === feature);
      return Object.fromEntries(own.map(({ labels, value }) => [String(labels.event), value]));
    },
    registerGauge(gauge) {
      new Gauge({
        name: gauge.name,
        help: gauge.help,
        registers,
        collect() {
          this.set(gauge.value());
        },
      });
    },
    registerCounter(counter) {
      new Counter({
        name: counter.name,
        help: counter.help,
        registers,
        collect() {
          this.reset();
          this.inc(counter.value());
        },
      });
    },
    expose: async () => ({ contentType: registry.contentType, body: await registry.metrics() }),
  };
}
