import type { Config } from '../config/schema.ts';
import type { Component } from '../lib/component.ts';
import { createAccessLog } from '../telemetry/exchange-record.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { startOtlp } from '../telemetry/otlp.ts';
import { createTracing } from '../telemetry/tracing.ts';

/** The log of requests, and their spans if a collector is configured. */
export async function createTelemetry(
  { telemetry }: Pick<Config, 'telemetry'>,
  { values }: Pick<Metrics, 'values'>,
  more: { readonly version: string; readonly log: Log },
) {
  const otlp = telemetry.otlp && (await startOtlp({ ...telemetry.otlp, ...more, values }));
  const components: readonly Component[] = otlp === undefined ? [] : [otlp.component];
  const tracing = otlp && (await createTracing(otlp.tracer));
  return { components, tracing, accessLog: createAccessLog(more) };
}
