import { describe, expect, it } from 'vitest';
import { counter, gauge } from '../../src/lib/component.ts';
import type { ExchangeRecord } from '../../src/telemetry/exchange-record.ts';
import { combineCounts, createMetrics, exposeAggregated } from '../../src/telemetry/metrics.ts';
import { createUnlistedTypes } from '../../src/telemetry/unlisted-types.ts';

const record: ExchangeRecord = {
  requestId: 'id',
  method: 'GET',
  route: '/carts/{cart_id}',
  path: '/carts/1',
  decision: 'forwarded',
  status: 200,
  durationMs: 3,
  clientAddress: '127.0.0.1',
};

function processWith(exchanges: number, rows: number) {
  const metrics = createMetrics();
  metrics.register(
    gauge('rows', 'Rows.', 'min', () => rows),
    gauge('load', 'Load.', 'sum', () => rows),
    counter('looks', 'Looks.', () => exchanges),
  );
  for (let i = 0; i < exchanges; i++) metrics.observeExchange(record);
  return metrics;
}

describe('metrics of several processes', () => {
  it('are added up, but for gauges that say otherwise', async () => {
    const processes = [await processWith(2, 5).values(), await processWith(3, 4).values()];
    const { contentType, body } = await exposeAggregated(processes);
    expect(contentType).toMatch(/^application\/openmetrics-text/);
    const lines = body.split('\n');
    expect(lines).toContain('rows 4');
    expect(lines).toContain('load 9');
    expect(lines).toContain('looks_total 5');
    const labels = 'http_request_method="GET",http_route="/carts/{cart_id}",http_response_status_code="200"';
    expect(lines).toContain(`http_server_request_duration_seconds_count{${labels}} 5`);
    expect(body).not.toContain('_total_total');
    expect(body.endsWith('# EOF\n')).toBe(true);
  });

  it('keep the counts of those that are gone, and not their gauges', async () => {
    const gone = await combineCounts([await processWith(2, 5).values(), await processWith(2, 5).values()]);
    const { body } = await exposeAggregated([await processWith(3, 4).values(), gone]);
    expect(body.split('\n')).toEqual(expect.arrayContaining(['rows 4', 'load 4', 'looks_total 7']));
  });
});

describe('resource types that the shop protects and the list does not', () => {
  const drift = { ...record, route: '*', status: 401 };
  it.each<[string, Partial<ExchangeRecord>, string | undefined]>([
    ['401 of the shop', { path: '/orders/1' }, 'orders'],
    ['403 of the shop', { path: '/Orders', status: 403 }, 'orders'],
    ['an answer', { status: 200 }, undefined],
    ['our own refusal', { decision: 'refused' }, undefined],
    ['a row of the list', { route: '/carts/{cart_id}' }, undefined],
    ['a preflight', { method: 'OPTIONS' }, undefined],
    ['no type', { path: '/123' }, 'other'],
    ['an escape', { path: '/%C3%BC' }, 'other'],
    ['the root', { path: '/' }, 'other'],
  ])('%s', (_, more, type) => {
    expect(createUnlistedTypes().find({ ...drift, ...more })).toBe(type);
  });

  it('are no more than so many: those of one client make room, in the order in which they came', () => {
    const forgotten: string[] = [];
    const types = createUnlistedTypes(2, (type) => forgotten.push(type));
    const find = (path: string, clientAddress = '::1') => types.find({ ...drift, path, clientAddress });
    expect(['/a', '/b', '/c', '/a'].map((path) => find(path))).toEqual(['a', 'b', 'c', 'a']);
    expect(forgotten).toEqual(['a', 'b']);
  });

  it('that many clients met are hidden by nobody', () => {
    const types = createUnlistedTypes(2);
    const find = (path: string, clientAddress: string) => types.find({ ...drift, path, clientAddress });
    for (let i = 0; i < 100; i++) find(`/invented${String.fromCharCode(97 + (i % 26))}`, '::1');
    expect([find('/orders', '::2'), find('/orders', '::3')]).toEqual(['orders', 'orders']);
    for (let i = 0; i < 100; i++) find(`/invented${String.fromCharCode(97 + (i % 26))}`, '::1');
    expect(find('/orders', '::4')).toBe('orders');
    expect([find('/carts', '::2'), find('/carts', '::3'), find('/more', '::2')]).toEqual([
      'carts',
      'carts',
      'other',
    ]);
  });

  it('that made room leave the exposition', async () => {
    const metrics = createMetrics();
    for (let i = 0; i < 60; i++) {
      const name = `/t${String.fromCharCode(97 + (i % 26))}${String.fromCharCode(97 + i / 26)}`;
      metrics.observeExchange({ ...drift, path: name });
    }
    const { body } = await exposeAggregated([await metrics.values()]);
    expect(body.match(/^shopward_unlisted_refusals_total/gm)).toHaveLength(50);
  });
});
