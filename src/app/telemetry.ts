import type { Config } from '../config/schema.ts';
import type { CanonicalRequest } from '../http/canonical-request.ts';
import type { Component } from '../lib/component.ts';
import { createAccessLog, type ExchangeRecord } from '../telemetry/exchange-record.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { startOtlp } from '../telemetry/otlp.ts';
import { loadTracing } from '../telemetry/tracing.ts';

/** The log of requests, and their spans where a collector is configured or an SDK was registered before the start. */
export async function createTelemetry(
  { telemetry }: Pick<Config, 'telemetry'>,
  { values }: Pick<Metrics, 'values'>,
  more: { readonly version: string; readonly log: Log },
) {
  const otlp = telemetry.otlp && (await startOtlp({ ...telemetry.otlp, ...more, values }));
  const components: readonly Component[] = otlp === undefined ? [] : [otlp.component];
  const [tracing, accessLog] = [await loadTracing(otlp?.tracer), createAccessLog(more)];
  return {
    components,
    note(record: ExchangeRecord, request: CanonicalRequest | undefined): void {
      tracing?.note(record, request);
      accessLog.write(record);
    },
  };
}
