import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { DecisionLog } from '../../../src/admin/decision-log.ts';
import { createRedactPath } from '../../../src/telemetry/exchange-record.ts';
import { exchangeRecord } from './exchange-records.ts';

describe('the ring of decisions', () => {
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
