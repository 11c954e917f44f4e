import type { Attributes, Context, Span, Tracer } from '@opentelemetry/api';
import type { CanonicalRequest } from '../http/canonical-request.ts';
import { fieldValue } from '../http/field-list.ts';
import type { ExchangeRecord } from './exchange-record.ts';

type Api = typeof import('@opentelemetry/api');

/** Spans of exchanges. `traceparent` is forwarded unchanged. */
export async function createTracing(tracer: Tracer) {
  const api = await import('@opentelemetry/api');
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

/** The client's span (W3C Trace Context, version 00 and later). */
function parentOf(api: Api, request: CanonicalRequest | undefined): Context {
  const traceparent = (request && fieldValue(request.fields, 'traceparent')) ?? '';
  const [, traceId, spanId, flags] = traceparentForm.exec(traceparent) ?? [];
  if (request === undefined || traceId === undefined || spanId === undefined) return api.ROOT_CONTEXT;
  const tracestate = fieldValue(request.fields, 'tracestate');
  const parent = { traceId, spanId, traceFlags: Number.parseInt(flags ?? '', 16), isRemote: true };
  if (!api.isSpanContextValid(parent)) return api.ROOT_CONTEXT;
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
