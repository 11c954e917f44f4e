import type { Attributes, Context, Span, Tracer } from '@opentelemetry/api';
import type { CanonicalRequest } from '../http/canonical-request.ts';
import { fieldValue } from '../http/field-list.ts';
import type { ExchangeRecord } from './exchange-record.ts';

/** Spans for whoever runs shopward under an OpenTelemetry SDK. */
interface Tracing {
  /** One server span for an exchange that has ended, below the client's `traceparent` where it sent one. */
  note(record: ExchangeRecord, request: CanonicalRequest | undefined): void;
}

type Api = typeof import('@opentelemetry/api');

/** Where an SDK registers itself; the API's own name for it. */
const registry = Symbol.for('opentelemetry.js.api.1');

/**
 * Undefined unless an SDK was registered before us (`node --import ./instrumentation.mjs`) and the API package is there:
 * nothing is loaded and nothing costs otherwise. `traceparent` itself is passed on as it came.
 */
export async function loadTracing(): Promise<Tracing | undefined> {
  const registered = (globalThis as { [registry]?: { trace?: unknown } })[registry];
  if (registered?.trace === undefined) return undefined;
  const api = await import('@opentelemetry/api').catch(() => undefined);
  return api && createTracing(api);
}

function createTracing(api: Api): Tracing {
  const tracer: Tracer = api.trace.getTracer('shopward');
  return {
    note(record, request) {
      const endTime = Date.now();
      const span: Span = tracer.startSpan(
        record.route === '*' ? record.method : `${record.method} ${record.route}`,
        {
          kind: api.SpanKind.SERVER,
          startTime: endTime - record.durationMs,
          attributes: attributesOf(record),
        },
        parentOf(api, request),
      );
      if (record.status >= 500) span.setStatus({ code: api.SpanStatusCode.ERROR });
      span.end(endTime);
    },
  };
}

function parentOf(api: Api, request: CanonicalRequest | undefined): Context {
  const traceparent = request && fieldValue(request.fields, 'traceparent');
  if (traceparent === undefined) return api.ROOT_CONTEXT;
  const tracestate = request && fieldValue(request.fields, 'tracestate');
  return api.propagation.extract(api.ROOT_CONTEXT, { traceparent, ...(tracestate && { tracestate }) });
}

/** Names of OpenTelemetry's HTTP conventions, and ours; nothing that the access log would not say. */
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
