import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { DecisionLog } from '../../src/admin/decision-log.ts';
import { createRedactPath, type ExchangeRecord } from '../../src/telemetry/exchange-record.ts';
import { exchangeRecord } from './exchange-records.ts';

describe('the ring of decisions', () => {
  it('keeps the last ones, in order', () => {
    const log = new DecisionLog(3);
    expect(log.since(0)).toEqual([]);
    for (let i = 1; i <= 5; i++) log.note(exchangeRecord({ path: `/${i}` }), i);
    expect(log.last).toBe(5);
    expect(log.since(0).map(({ seq, atMs, path }) => [seq, atMs, path])).toEqual([
      [3, 3, '/3'],
      [4, 4, '/4'],
      [5, 5, '/5'],
    ]);
    expect(log.since(4).map(({ seq }) => seq)).toEqual([5]);
    expect(log.since(5)).toEqual([]);
    expect(log.since(99)).toEqual([]);
  });

  const refused: ExchangeRecord = {
    requestId: '7f1c',
    method: 'PATCH',
    route: '/carts/{cart_id}',
    path: '/carts/1',
    decision: 'refused',
    status: 412,
    rejection: 'collection-write',
    reason: 'stale',
    observed: 'access-token-invalid',
    durationMs: 1.25,
    upstreamMs: 0.5,
    clientAddress: '2001:db8::1',
    fault: 'ECONNRESET',
  };
  const long = exchangeRecord({ requestId: 'r'.repeat(200), path: `/${'p'.repeat(8_000)}` });
  const cut = exchangeRecord({ path: '/refresh-tokens/…' });
  const exact = exchangeRecord({ requestId: 'x'.repeat(128), path: `/…${'y'.repeat(124)}` });
  const beyond = exchangeRecord({ requestId: 'x'.repeat(129), path: `/…${'y'.repeat(125)}` });
  const waited = exchangeRecord({ upstreamMs: 0 });

  it('gives back what it was given, whatever stood in its place before', () => {
    const log = new DecisionLog(2);
    const all = [
      refused,
      long,
      cut,
      exact,
      beyond,
      exchangeRecord(),
      waited,
      refused,
      exchangeRecord(),
      long,
    ];
    for (const record of all) {
      log.note(record, 1);
      const { seq, atMs, ...kept } = log.since(log.last - 1)[0] ?? {};
      expect([seq, atMs]).toEqual([log.last, 1]);
      expect(kept).toEqual(record);
    }
  });

  it('keeps no record alive, so that none grows old', () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const log = new DecisionLog(100);
    const noted = Array.from({ length: 50 }, (_, i) => {
      const record = exchangeRecord({ path: `/${i}` });
      log.note(record, i);
      return new WeakRef(record);
    });
    return new Promise<void>((resolve) => setImmediate(resolve)).then(() => {
      collect();
      expect(noted.filter((one) => one.deref() !== undefined)).toEqual([]);
      expect(log.since(0).map(({ path }) => path)).toEqual(Array.from({ length: 50 }, (_, i) => `/${i}`));
    });
  });

  it('keeps of a long path no more than its octets, whatever request line it was cut from', () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const log = new DecisionLog(500);
    const redactPath = createRedactPath([]);
    const names = [0, 1].map((k) => `${k}-${'x'.repeat(70)}`);
    collect();
    const before = process.memoryUsage().heapUsed;
    for (let i = 0; i < 500; i++) {
      const line = Buffer.from(`/${names.join('/')}?${'y'.repeat(60_000)}`).toString('latin1');
      log.note(exchangeRecord({ path: redactPath(line.split('?', 1)[0]?.slice(1).split('/') ?? []) }), i);
    }
    collect();
    // The lines have 30 MB.
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(5_000_000);
    expect(log.since(499).map(({ path }) => path)).toEqual([`/${names.join('/')}`]);
  });
});
