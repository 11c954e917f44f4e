import type { Attributes, Context, Span, Tracer } from '@opentelemetry/api';
import type { CanonicalRequest } from '../http/canonical-request.ts';
import { fieldValue } from '../http/field-list.ts';
import type { ExchangeRecord } from './exchange-record.ts';

type Api = typeof import('@opentelemetry/api');

/** The key under which an SDK registers itself with the API. */
const registry = Symbol.for('opentelemetry.js.api.1');

/**
 * Spans for an OpenTelemetry SDK in this process. Undefined, and nothing is loaded, unless an SDK was registered before
 * the start (`node --import ./instrumentation.mjs`) and the API package is installed. `traceparent` is forwarded unchanged.
 */
export async function loadTracing() {
  const registered = (globalThis as { [registry]?: { trace?: unknown } })[registry];
  if (registered?.trace === undefined) return undefined;
  const api = await import('@opentelemetry/api').catch(() => undefined);
  return api && createTracing(api);
}

function createTracing(api: Api) {
  const tracer: Tracer = api.trace.getTracer('shopward');
  return {
    /** Records a server span for an exchange that has ended, as a child of the client's `traceparent` if there is one. */
    note(record: ExchangeRecord, request: CanonicalRequest | undefined): void {
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

/** Attributes by OpenTelemetry's HTTP conventions, and shopward's own; nothing that is not in the access log. */
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
