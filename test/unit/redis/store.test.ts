import { Redis as RawClient } from 'ioredis';
import { describe, expect, type TestContext, test } from 'vitest';
import { type Member, recordForms } from '../../../src/redis/membership.ts';
import { parseRedisUrl } from '../../../src/redis/redis-url.ts';
import { openRedisStore } from '../../../src/redis/store.ts';
import { closingAtEnd } from '../../harness/closing-at-end.ts';
import { startRedis } from '../../harness/redis-processes.ts';

const member: Member = {
  ...{ version: '1', forms: recordForms, owner: 'blue', leaseMs: 10_000, tracked: [], digestKey: '' },
};

/** A store whose start has ended, its Redis, and a client of the test. */
async function start(context: TestContext) {
  const open = closingAtEnd(context);
  const server = open(await startRedis({ settings: { 'enable-debug-command': 'yes' } }));
  const direct = new RawClient(server.url, { retryStrategy: () => 50 }).on('error', () => {});
  open({ close: async () => direct.disconnect() });
  const lines: string[] = [];
  const say = ({ event }: { event?: string }, text: string) => void lines.push(`${event}: ${text}`);
  const store = openRedisStore(
    { url: parseRedisUrl(server.url), timeoutMs: 20_000, prefix: 'p', replicas: 0, member },
    { info: say, warn: say, error: say, debug: say } as never,
  );
  open({ close: async () => store.close?.() });
  const heard = { news: 0 };
  store.onNewData(() => {
    heard.news += 1;
  });
  await store.start?.();
  /** The store reads INFO at once on a new connection. */
  const cutConnections = () => direct.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
  return { server, direct, store, lines, heard, cutConnections };
}

describe.concurrent('a store', () => {
  test('is ready and ok after its start, and down after close', async (context) => {
    const { direct, store, lines, heard } = await start(context);
    expect(lines).toEqual(['store: Redis is ready']);
    expect(heard.news).toBeGreaterThan(0);
    await direct.hset('p:{members}', 'other', 'x');
    expect([await store.sharing(), store.coldStartMs()]).toEqual([2, 10_000]);
    expect(store.health()).toMatchObject({ status: 'ok', reasons: [], text: 'Redis answers' });
    expect(store.health().details?.map(({ label, value }) => [label, value])).toEqual([
      ['kind', 'Redis, single'],
      ['since', expect.any(Number)],
      ['memory', expect.stringMatching(/^\d+ MiB$/)],
      ['claims', 0],
      ['time of a claim', null],
    ]);
    const values = Object.fromEntries((store.metrics ?? []).map(({ name, value }) => [name, value()]));
    expect(values).toEqual({
      ...{ shopward_store_up: 1, shopward_store_replicas_confirmed: 0 },
      ...{ shopward_store_memory_used_bytes: expect.any(Number), shopward_store_memory_max_bytes: 0 },
      ...{ shopward_store_disagreements: 0, shopward_store_claims: 0, shopward_store_claim_seconds: 0 },
      shopward_store_unconfirmed_claims: 0,
    });
    await store.close?.();
    expect(store.health()).toMatchObject({ status: 'down', reasons: ['Redis is closed'] });
    expect(await store.sharing()).toBeNull();
  });

  test('is degraded while it is at least 80% full', async (context) => {
    const { direct, store, cutConnections } = await start(context);
    const used = Number(/used_memory:(\d+)/.exec(await direct.info('memory'))?.[1]);
    // Redis uses a little more or less at each look.
    for (const [share, reasons] of [
      [0.93, [expect.stringMatching(/^Redis is (?:8|9)\d% full; when it is full, tracked writes and/)]],
      [0.6, []],
    ] as const) {
      await direct.config('SET', 'maxmemory', Math.round(used / share));
      await cutConnections();
      await context.expect.poll(() => store.health().reasons).toEqual(reasons);
    }
  });

  test('reports new data after a changed replication id and after a restart', async (context) => {
    const { server, direct, heard, cutConnections } = await start(context);
    heard.news = 0;
    // As after repl-backlog-ttl without a replica.
    await direct.call('DEBUG', 'CHANGE-REPL-ID');
    await cutConnections();
    await context.expect.poll(() => heard.news).toBe(1);
    await server.process?.restart();
    await context.expect.poll(() => heard.news).toBeGreaterThan(1);
  });
});
