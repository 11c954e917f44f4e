import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { answer, type RecordingUpstream, startRecordingUpstream } from '../../harness/recording-upstream.ts';
import { type SingleRedis, startRedis } from '../../harness/redis-processes.ts';
import { type Shopward, startShopward } from '../../harness/shopward.ts';

/** Two worker processes, and a primary that reports for both. */
describe('the admin API of several workers', () => {
  let redis: SingleRedis;
  let upstream: RecordingUpstream;
  let shopward: Shopward;
  beforeAll(async () => {
    [redis, upstream] = await Promise.all([
      startRedis(),
      startRecordingUpstream(() => answer('ok', '', '200 OK')),
    ]);
    shopward = await startShopward({
      upstream: `http://127.0.0.1:${upstream.port}`,
      rows: ['GET /orders'],
      config: { workers: 2, store: { url: redis.url } },
    });
  });
  afterAll(async () => {
    await shopward?.stop();
    await upstream?.close();
    await redis?.close();
  });
  const get = async (path: string) => (await fetch(`${shopward.adminUrl}${path}`)).json() as Promise<Answer>;

  interface Answer {
    readonly found: number;
    readonly outcomes: { readonly refused: readonly number[] };
    readonly processes: readonly { readonly pid: number }[];
    readonly workers: number;
    readonly keys: readonly object[];
    readonly sharing: number | null;
  }

  it('finds the decisions of every worker, and counts them in one series', async () => {
    // Each opens a connection, so that both workers get some.
    for (let i = 0; i < 20; i++) {
      await (await fetch(`${shopward.url}/orders`, { headers: { Connection: 'close' } })).arrayBuffer();
    }
    await expect.poll(async () => (await get('/api/decisions/search?outcome=refused')).found).toBe(20);
    const { outcomes } = await get('/api/series?range=1h');
    expect(outcomes.refused.reduce((sum, times) => sum + times, 0)).toBe(20);
  });

  it('explains tokens with the keys in force', async () => {
    const verdictOf = async (url: string) => {
      const body = JSON.stringify({ method: 'GET', url });
      const reply = await fetch(`${shopward.adminUrl}/api/explain`, { method: 'POST', body });
      return ((await reply.json()) as { verdict: string }).verdict;
    };
    expect(await verdictOf(shopward.issueToken())).toBe('token-accepted');
    expect(await verdictOf(shopward.issueToken({ exp: 1 }))).toBe('token-refused');
  });

  it('lists both processes, each key once, and how many share the store', async () => {
    const look = async () => {
      const { processes, workers, keys, sharing } = await get('/api/system');
      const pids = new Set(processes.map(({ pid }) => pid));
      return [pids.size, pids.has(shopward.pid), workers, keys.length, sharing];
    };
    await expect.poll(look).toEqual([2, false, 2, 1, 2]);
  });
});
