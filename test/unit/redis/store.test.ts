import { expect, test } from 'vitest';
import { type Member, recordForms } from '../../../src/redis/membership.ts';
import { parseRedisUrl } from '../../../src/redis/redis-url.ts';
import { openRedisStore } from '../../../src/redis/store.ts';
import { closingAtEnd } from '../../harness/closing-at-end.ts';
import { startRedis, until } from '../../harness/redis-processes.ts';

const member: Member = {
  ...{ version: '1', forms: recordForms, owner: 'blue', leaseMs: 10_000, tracked: [], digestKey: '' },
};

test('a store is ready and ok after its start, and down after close', async (context) => {
  const open = closingAtEnd(context);
  const server = open(await startRedis({}));
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
  // The start waits for two seconds only.
  await until(async () => lines.length > 0);
  await store.start?.();
  expect(lines).toEqual(['store: Redis is ready']);
  expect(heard.news).toBeGreaterThan(0);
  await store.redis.command('HSET', 'p:{members}', 'other', 'x');
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
