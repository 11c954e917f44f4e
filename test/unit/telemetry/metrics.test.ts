import { describe, expect, it } from 'vitest';
import { counter, gauge, type MetricSpec } from '../../../src/lib/component.ts';
import type { ExchangeRecord } from '../../../src/telemetry/exchange-record.ts';
import {
  combineCounts,
  createMetrics,
  exposeAggregated,
  type Metrics,
} from '../../../src/telemetry/metrics.ts';

const record: ExchangeRecord = {
  requestId: 'id',
  method: 'GET',
  route: '/carts/{cart_id}',
  path: '/carts/1',
  decision: 'forwarded',
  status: 200,
  durationMs: 3,
  bytesIn: 0,
  bytesOut: 0,
  clientAddress: '127.0.0.1',
};

function processWith(exchanges: number, rows: number) {
  const metrics = createMetrics();
  metrics.register(
    gauge('rows', 'Rows.', 'min', () => rows),
    gauge('load', 'Load.', 'sum', () => rows),
    counter('looks', 'Looks.', () => exchanges),
  );
  for (let i = 0; i < exchanges; i++) metrics.observeExchange(record, 1);
  return metrics;
}

describe('metrics of several processes', () => {
  it('are added up, except gauges declared otherwise', async () => {
    const processes = [await processWith(2, 5).values(), await processWith(3, 4).values()];
    const text = await exposeAggregated(processes);
    const lines = text.split('\n');
    expect(lines).toContain('rows 4');
    expect(lines).toContain('load 9');
    expect(lines).toContain('looks_total 5');
    const labels = 'http_request_method="GET",http_route="/carts/{cart_id}",http_response_status_code="200"';
    expect(lines).toContain(`http_server_request_duration_seconds_count{${labels}} 5`);
    expect(text).not.toContain('_total_total');
  });

  it('keep the counts of ended processes, and not their gauges', async () => {
    const gone = await combineCounts([await processWith(2, 5).values(), await processWith(2, 5).values()]);
    const text = await exposeAggregated([await processWith(3, 4).values(), gone]);
    expect(text.split('\n')).toEqual(expect.arrayContaining(['rows 4', 'load 4', 'looks_total 7']));
  });
});

/** Lines of one metric, without help and type. */
async function linesOf(metrics: Metrics, name: string): Promise<string[]> {
  const text = await metrics.expose();
  return text.split('\n').filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
}

describe('metrics of one process', () => {
  it('include those of Node only if the process serves', async () => {
    expect(await createMetrics().expose()).toContain('process_cpu_seconds_total ');
    expect(await createMetrics({ ofProcess: false }).expose()).not.toContain('process_');
  });

  it('a duration counts in each bucket whose bound it does not exceed', async () => {
    const metrics = createMetrics({ ofProcess: false });
    for (const durationMs of [0, 1, 2, 60_000, 60_001]) metrics.observeExchange({ ...record, durationMs }, 1);
    metrics.observeExchange({ ...record, route: '*', method: 'PUT', status: 404, durationMs: 3 }, 1);
    const name = 'http_server_request_duration_seconds';
    const buckets = (await linesOf(metrics, `${name}_bucket`)).filter((line) => line.includes('"GET"'));
    expect(buckets.map((line) => /le="([^"]+)".* (\d+)$/.exec(line)?.slice(1).join(' '))).toEqual([
      ...['0.001 2', '0.0025 3', '0.005 3', '0.01 3', '0.025 3', '0.05 3', '0.1 3', '0.25 3', '0.5 3'],
      ...['1 3', '2.5 3', '5 3', '10 3', '30 3', '60 4', '+Inf 5'],
    ]);
    const labels = 'http_request_method="GET",http_route="/carts/{cart_id}",http_response_status_code="200"';
    const others = 'http_request_method="PUT",http_route="*",http_response_status_code="404"';
    expect(await linesOf(metrics, `${name}_count`)).toEqual([
      `${name}_count{${labels}} 5`,
      `${name}_count{${others}} 1`,
    ]);
    const sums = (await linesOf(metrics, `${name}_sum`)).map((line) => Number(line.split(' ').at(-1)));
    expect(sums).toEqual([expect.closeTo(120.004, 6), 0.003]);
  });

  it('the time of the upstream counts if it was asked, for any route', async () => {
    const metrics = createMetrics({ ofProcess: false });
    metrics.observeExchange({ ...record, upstreamMs: 500 }, 1);
    metrics.observeExchange({ ...record, route: '*', upstreamMs: 0 }, 1);
    metrics.observeExchange(record, 1);
    // A status that shopward itself answers is no status of the shop.
    metrics.observeExchange({ ...record, status: 504, rejection: 'upstream-timeout', upstreamMs: 30_000 }, 1);
    const name = 'http_client_request_duration_seconds';
    const labels = 'http_request_method="GET",http_response_status_code="200"';
    const none = labels.replace('200', '0');
    expect(await linesOf(metrics, `${name}_count`)).toEqual([
      `${name}_count{${labels}} 2`,
      `${name}_count{${none}} 1`,
    ]);
    expect(await linesOf(metrics, `${name}_sum`)).toEqual([
      `${name}_sum{${labels}} 0.5`,
      `${name}_sum{${none}} 30`,
    ]);
  });

  it('events count by feature, for `eventDetails` and for a scrape', async () => {
    const metrics = createMetrics({ ofProcess: false });
    expect(metrics.eventDetails('locks')).toEqual([]);
    for (const event of ['hit', 'hit', 'lease-miss']) metrics.countEvent('cache', event);
    metrics.countEvent('locks', 'hit');
    expect(metrics.eventDetails('cache').map(({ label, value }) => [label, value])).toEqual([
      ['hit', 2],
      ['lease miss', 1],
    ]);
    await metrics.expose();
    const name = 'shopward_events_total';
    expect((await linesOf(metrics, name)).toSorted()).toEqual([
      `${name}{feature="cache",event="hit"} 2`,
      `${name}{feature="cache",event="lease-miss"} 1`,
      `${name}{feature="locks",event="hit"} 1`,
    ]);
  });

  it('components are read at each scrape; metrics with one name are series of one metric', async () => {
    const metrics = createMetrics({ ofProcess: false });
    let value = 1;
    const labelled = (kind: 'gauge' | 'counter', where: string, factor: number): MetricSpec => ({
      ...{ name: kind, help: 'Help.', kind, combine: 'sum', labels: { where } },
      value: () => factor * value,
    });
    metrics.register(labelled('gauge', 'a', 1), labelled('counter', 'a', 1), labelled('gauge', 'b', 10));
    metrics.register(labelled('counter', 'b', 10));
    await metrics.expose();
    value = 2;
    expect(await linesOf(metrics, 'gauge')).toEqual(['gauge{where="a"} 2', 'gauge{where="b"} 20']);
    expect(await linesOf(metrics, 'counter_total')).toEqual([
      'counter_total{where="a"} 2',
      'counter_total{where="b"} 20',
    ]);
  });
});
