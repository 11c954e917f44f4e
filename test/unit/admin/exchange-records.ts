import type { ExchangeRecord } from '../../../src/telemetry/exchange-record.ts';

/** A record as the pipeline writes it. Default: a forwarded request to an open route, answered with 200. */
export function exchangeRecord(record: Partial<ExchangeRecord> = {}): ExchangeRecord {
  return {
    requestId: 'id',
    method: 'GET',
    route: '*',
    path: '/',
    decision: 'forwarded',
    status: 200,
    durationMs: 1,
    bytesIn: 0,
    bytesOut: 0,
    clientAddress: '192.0.2.1',
    ...record,
  };
}
