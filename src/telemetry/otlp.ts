import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Attributes, Context, Tracer } from '@opentelemetry/api';
import type { Resource } from '@opentelemetry/resources';
import type { MetricData, MetricProducer } from '@opentelemetry/sdk-metrics';
import type { MetricValueWithName } from 'prom-client';
import type { CanonicalRequest } from '../http/canonical-request.ts';
import { fieldValue } from '../http/field-list.ts';
import { type Component, type ComponentLog, healthOf } from '../lib/component.ts';
import type { ExchangeRecord } from './exchange-record.ts';
import type { MetricValues } from './metrics.ts';

interface OtlpOptions {
  /** Origin of the collector, such as `http://collector:4318`; `/v1/traces` and `/v1/metrics` are appended. */
  readonly endpoint: string;
  /** Share of requests that are traced, 0 to 1, unless their `traceparent` decides it. */
  readonly sampleRatio: number;
  readonly version: string;
  values(): Promise<MetricValues>;
  readonly log: ComponentLog;
}

const scope = 'shopward';
/** Time-out of an export, and of the stop, which sends the rest: an export keeps the process alive. */
const timeoutMillis = 5000;

/**
 * Sends spans and metrics of this process to an OpenTelemetry collector as OTLP over HTTP, in JSON. The SDK also reads its
 * `OTEL_` variables, such as `OTEL_EXPORTER_OTLP_HEADERS`. Rejects if a package is missing.
 */
export async function startOtlp({ endpoint, sampleRatio, version, values, log }: OtlpOptions) {
  const [api, { resourceFromAttributes }, traces, metrics, { OTLPTraceExporter }, { OTLPMetricExporter }] =
    await Promise.all([
      import('@opentelemetry/api'),
      import('@opentelemetry/resources'),
      import('@opentelemetry/sdk-trace'),
      import('@opentelemetry/sdk-metrics'),
      import('@opentelemetry/exporter-trace-otlp-http'),
      import('@opentelemetry/exporter-metrics-otlp-http'),
    ]);
  const base = `${endpoint.replace(/\/$/, '')}/v1`;
  const [spansUrl, metricsUrl] = [`${base}/traces`, `${base}/metrics`];
  const delivery = createDelivery(log);
  const resource = resourceFromAttributes({
    'service.name': process.env.OTEL_SERVICE_NAME ?? scope,
    'service.version': version,
    // A new id for each worker, so that their counters stay apart.
    'service.instance.id': randomUUID(),
  });
  const spans = delivery.watch(spansUrl, new OTLPTraceExporter({ url: spansUrl, timeoutMillis }));
  const tracerProvider = new traces.TracerProvider({
    resource,
    sampler: new traces.ParentBasedSampler({ root: new traces.TraceIdRatioBasedSampler(sampleRatio) }),
    spanProcessors: [new traces.BatchSpanProcessor({ exporter: spans })],
  });
  const meterProvider = new metrics.MeterProvider({
    resource,
    readers: [
      new metrics.PeriodicExportingMetricReader({
        exporter: delivery.watch(metricsUrl, new OTLPMetricExporter({ url: metricsUrl, timeoutMillis })),
        metricProducers: [createProducer(values, resource, metrics)],
      }),
    ],
  });
  const component: Component = {
    name: 'otlp',
    title: 'Telemetry',
    health: () => healthOf(delivery.reasons()),
    async close() {
      const sent = Promise.allSettled([tracerProvider.shutdown(), meterProvider.shutdown()]);
      await Promise.race([sent, sleep(timeoutMillis, undefined, { ref: false })]);
    },
  };
  const tracer = tracerProvider.getTracer(scope, version);
  return {
    component,
    note: (record: ExchangeRecord, request: CanonicalRequest | undefined) =>
      noteSpan(api, tracer, record, request),
  };
}

/** Whether the collector accepts spans and metrics: it may accept only one of them. A change is logged once. */
function createDelivery(log: ComponentLog) {
  /** URL -> why the collector refuses the data. */
  const faults = new Map<string, string>();
  const note = (url: string, fault: string | undefined): void => {
    const wasFailing = faults.delete(url);
    if (fault !== undefined) faults.set(url, fault);
    if (fault === undefined && wasFailing) log.info({ url }, 'the collector takes telemetry again');
    if (fault !== undefined && !wasFailing) log.warn({ url, error: fault }, 'telemetry cannot be sent');
  };
  return {
    reasons: () => Array.from(faults, ([url, fault]) => `${url} takes no telemetry: ${fault}`),
    watch<T, E extends { export(items: T, done: (result: { code: number; error?: Error }) => void): void }>(
      url: string,
      exporter: E,
    ): E {
      const send = exporter.export.bind(exporter);
      exporter.export = (items, done) =>
        send(items, (result) => {
          note(url, result.code === 0 ? undefined : (result.error?.message ?? 'refused'));
          done(result);
        });
      return exporter;
    },
  };
}

type MetricsSdk = typeof import('@opentelemetry/sdk-metrics');

/** Gives the values of `/metrics` to the SDK, under their names without `_total`. */
function createProducer(values: OtlpOptions['values'], resource: Resource, sdk: MetricsSdk): MetricProducer {
  const startTime = timeNow();
  return {
    async collect() {
      const times = { startTime, endTime: timeNow() };
      const metrics = (await values()).map((metric) => toMetricData(metric, times, sdk));
      return {
        resourceMetrics: { resource, scopeMetrics: [{ scope: { name: scope }, metrics }] },
        errors: [],
      };
    },
  };
}

type Times = Record<'startTime' | 'endTime', [seconds: number, nanoseconds: number]>;

function timeNow(): [seconds: number, nanoseconds: number] {
  const ms = Date.now();
  return [Math.floor(ms / 1000), (ms % 1000) * 1_000_000];
}

function toMetricData(
  { name, help, type, values }: MetricValues[number],
  times: Times,
  { AggregationTemporality, DataPointType }: MetricsSdk,
): MetricData {
  const common = {
    // OTLP knows a sum by its type.
    descriptor: { name: name.replace(/_total$/, ''), description: help, unit: '', valueType: 1 },
    aggregationTemporality: AggregationTemporality.CUMULATIVE,
  };
  if (String(type) === 'histogram') {
    const dataPoints = histogramsOf(values).map((one) => ({ ...times, ...one }));
    return { ...common, dataPointType: DataPointType.HISTOGRAM, dataPoints };
  }
  const dataPoints = values.map(({ labels, value }) => ({ ...times, attributes: labels, value }));
  if (String(type) === 'counter')
    return { ...common, dataPointType: DataPointType.SUM, isMonotonic: true, dataPoints };
  return { ...common, dataPointType: DataPointType.GAUGE, dataPoints };
}

interface HistogramSeries {
  readonly attributes: Attributes;
  readonly bounds: number[];
  /** Observations up to each bound, then all of them. */
  readonly below: number[];
  sum: number;
  count: number;
}

/** prom-client has a row for each bucket (the observations up to its bound), and a row each for sum and count. */
function histogramsOf(values: MetricValues[number]['values']) {
  const found = new Map<string, HistogramSeries>();
  for (const { labels, value, metricName } of values as readonly MetricValueWithName<string>[]) {
    const { le, ...attributes } = labels;
    const key = JSON.stringify(attributes);
    const series = found.get(key) ?? { attributes, bounds: [], below: [], sum: 0, count: 0 };
    found.set(key, series);
    if (le !== undefined) {
      if (le !== '+Inf') series.bounds.push(Number(le));
      series.below.push(value);
    } else if (metricName?.endsWith('_sum')) series.sum = value;
    else series.count = value;
  }
  return Array.from(found.values(), ({ attributes, bounds, below, sum, count }) => ({
    attributes,
    value: {
      buckets: { boundaries: bounds, counts: below.map((all, i) => all - (below[i - 1] ?? 0)) },
      sum,
      count,
    },
  }));
}

type Api = typeof import('@opentelemetry/api');

/** Records a server span for an exchange that has ended, as a child of the client's `traceparent` if there is one. */
function noteSpan(
  api: Api,
  tracer: Tracer,
  record: ExchangeRecord,
  request: CanonicalRequest | undefined,
): void {
  const { method, route, status, durationMs } = record;
  const endTime = Date.now();
  const span = tracer.startSpan(
    route === '*' ? method : `${method} ${route}`,
    { kind: api.SpanKind.SERVER, startTime: endTime - durationMs, attributes: attributesOf(record) },
    parentOf(api, request),
  );
  if (status >= 500) span.setStatus({ code: api.SpanStatusCode.ERROR });
  span.end(endTime);
}

/** The client's span (W3C Trace Context, version 00 and later). */
function parentOf(api: Api, request: CanonicalRequest | undefined): Context {
  const { fields = [] } = request ?? {};
  const [, traceId = '', spanId = '', flags = ''] =
    traceparentForm.exec(fieldValue(fields, 'traceparent') ?? '') ?? [];
  const parent = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
  if (!api.isSpanContextValid(parent)) return api.ROOT_CONTEXT;
  const tracestate = fieldValue(fields, 'tracestate');
  return api.trace.setSpanContext(api.ROOT_CONTEXT, {
    ...parent,
    ...(tracestate !== undefined && { traceState: api.createTraceState(tracestate) }),
  });
}

const traceparentForm = /^(?!ff)[\da-f]{2}-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(?:-.*)?$/;

/** Attributes by OpenTelemetry's HTTP conventions, and shopward's own; all are in the access log as well. */
function attributesOf(record: ExchangeRecord): Attributes {
  return {
    'http.request.method': record.method === 'other' ? '_OTHER' : record.method,
    'http.response.status_code': record.status,
    'url.path': record.path,
    'client.address': record.clientAddress,
    ...(record.route !== '*' && { 'http.route': record.route }),
    ...(record.rejection !== undefined && { 'error.type': record.rejection }),
    ...(record.observed !== undefined && { 'shopward.observed': record.observed }),
    'shopward.decision': record.decision,
    'shopward.request_id': record.requestId,
  };
}
