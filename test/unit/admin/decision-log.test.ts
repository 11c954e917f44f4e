import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { DecisionLog } from '../../../src/admin/decision-log.ts';
import { createRedactPath } from '../../../src/telemetry/exchange-record.ts';
import { exchangeRecord } from './exchange-records.ts';

describe('the log of decisions', () => {
  it('keeps the path in memory, but not the long request line it was cut from', () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const log = new DecisionLog(500);
    const redactPath = createRedactPath([]);
    const names = [0, 1].map((k) => `${k}-${'x'.repeat(70)}`);
    collect();
    const before = process.memoryUsage().heapUsed;
    for (let i = 0; i < 500; i++) {
      const line = Buffer.from(`/${names.join('/')}?${'y'.repeat(60_000)}`).toString('latin1');
      const path = redactPath(line.split('?', 1)[0]?.slice(1).split('/') ?? []);
      log.note(exchangeRecord({ path }), 1_000 * i);
    }
    collect();
    // The request lines together have 30 MB.
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(5_000_000);
    expect(log.decisions().map(({ path }) => path)).toEqual(new Array(500).fill(`/${names.join('/')}`));
  });

  it('keeps 200 decisions per second and outcome, and all of a rarer outcome', () => {
    const log = new DecisionLog();
    const noteMany = (times: number, atMs: number) => {
      for (let i = 0; i < times; i++) log.note(exchangeRecord(), atMs);
    };
    noteMany(1_000, 5_000);
    log.note(exchangeRecord({ decision: 'refused', status: 401, rejection: 'access-token-missing' }), 5_999);
    noteMany(1_000, 6_000);
    const kept = log.decisions();
    expect(kept.map(({ seq }) => seq)).toEqual(Array.from({ length: 401 }, (_, i) => 401 - i));
    expect(kept.filter(({ outcome }) => outcome === 'refused')).toMatchObject([{ atMs: 5_999 }]);
  });
});
