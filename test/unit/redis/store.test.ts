import { describe, expect, it, onTestFinished } from 'vitest';
import { type Member, recordForms } from '../../../src/redis/membership.ts';
import { openRedisStore } from '../../../src/redis/store.ts';
import { bulk, healthy, infoReply, list, startScriptedRedis } from './scripted-redis.ts';

/** The state of the fake Redis. Shopward reads it at once on a new connection. */
interface Said {
  info: Readonly<Record<string, string | number>>;
  /** Another program has written into the list of members. */
  isListBroken?: boolean;
}

/** The part of Redis that the store needs to start. */
function startServer(said: Said) {
  return startScriptedRedis((words) => {
    const name = words[0]?.toUpperCase();
    if (name === 'INFO') return infoReply(said.info);
    if (name === 'HLEN') return ':3\r\n';
    // The announcement of a member: is it new, the digest key, the other members, the form of records.
    if (name === 'EVAL' || name === 'EVALSHA')
      if (said.isListBroken) return '-ERR user_script:27: Expected value but found invalid token\r\n';
      else return `*4\r\n${['0', ''].map(bulk).join('')}${list([])}:6\r\n`;
    return '+OK\r\n';
  });
}

const member: Member = {
  version: '1',
  forms: recordForms,
  owner: 'blue',
  leaseMs: 10_000,
  tracked: [],
  digestKey: '',
};

async function open(more: Partial<Said> & { replicas?: number } = {}) {
  const { replicas = 0, ...rest } = more;
  const said: Said = { info: healthy, ...rest };
  const { port, drop } = await startServer(said);
  const lines: string[] = [];
  const level =
    (name: string) =>
    ({ event }: { event?: string }, text: string) =>
      void lines.push(`${name} ${event}: ${text}`);
  const log = { info: level('info'), warn: level('warn'), error: level('error'), debug: level('debug') };
  const address = {
    ...{ kind: 'single' as const, hosts: [{ host: '127.0.0.1', port }], db: 0, tls: false },
  };
  const store = openRedisStore(
    { url: address as never, timeoutMs: 5_000, prefix: 'p', replicas, member },
    log as never,
  );
  onTestFinished(() => store.close?.());
  const news: string[] = [];
  store.onNewData((why) => void news.push(why));
  /** Changes INFO, and waits until shopward has read it. */
  const tell = async (info: Partial<typeof healthy>) => {
    said.info = { ...said.info, ...info, uptime: Math.random() };
    const expected = JSON.stringify([said.info.used_memory, said.info.maxmemory, said.info.run_id]);
    drop();
    await expect
      .poll(() => {
        const { facts } = store.redis.status();
        return JSON.stringify([facts?.memory.usedBytes, facts?.memory.maxBytes, facts?.runIds]);
      })
      .toBe(expected);
    await expect.poll(() => store.redis.state().status).not.toBe('connecting');
  };
  return { store, said, lines, news, tell };
}

describe('a store at its start', () => {
  it('is ready, counts its three members, and is ok', async () => {
    const { store, lines, news } = await open();
    await store.start?.();
    expect(lines).toEqual(['info store: Redis is ready']);
    expect(news).toEqual(['it was not reached before']);
    expect(await store.sharing()).toBe(3);
    expect(store.coldStartMs()).toBe(10_000);
    expect(store.health()).toMatchObject({ status: 'ok', reasons: [], text: 'Redis answers' });
    const details = store.health().details?.map(({ label, value }) => [label, value]);
    expect(details).toEqual([
      ['kind', 'Redis, single'],
      ['since', expect.any(Number)],
      ['memory', '50 MiB'],
      ['claims', 0],
      ['time of a claim', null],
    ]);
    const values = Object.fromEntries((store.metrics ?? []).map(({ name, value }) => [name, value()]));
    expect(values).toEqual({
      ...{ shopward_store_up: 1, shopward_store_replicas_confirmed: 0 },
      ...{ shopward_store_memory_used_bytes: 50 * 1024 * 1024, shopward_store_memory_max_bytes: 0 },
      ...{ shopward_store_disagreements: 0, shopward_store_claims: 0, shopward_store_claim_seconds: 0 },
      shopward_store_unconfirmed_claims: 0,
    });
    await store.close?.();
    expect(store.health()).toMatchObject({ status: 'down', reasons: ['Redis is closed'] });
    expect(await store.sharing()).toBeNull();
  });

  it('is degraded if the list of members cannot be read', async () => {
    const { store } = await open({ isListBroken: true });
    await store.start?.();
    const reason =
      'the key p:{members} cannot be read: tracked writes and refreshes get 503; delete it in Redis';
    expect(store.health()).toMatchObject({ status: 'degraded', reasons: [reason] });
  });

  it('that may evict records: start rejects', async () => {
    const { store } = await open({ info: { ...healthy, maxmemory_policy: 'allkeys-lru' } });
    await expect(store.start?.()).rejects.toThrow('its maxmemory-policy must be noeviction');
  });
});

it('is degraded while it is at least 80% full', async () => {
  const { store, tell } = await open({ info: { ...healthy, used_memory: 79_999, maxmemory: 100_000 } });
  await store.start?.();
  const full = (percent: number) => [
    `Redis is ${percent}% full; when it is full, tracked writes and refreshes get 503`,
  ];
  expect(store.health().reasons).toEqual([]);
  for (const [info, reasons] of [
    [{ used_memory: 80_000 }, full(80)],
    [{ used_memory: 95_001 }, full(95)],
    [{ used_memory: 78_001 }, []],
    [{ used_memory: 10, maxmemory: 0 }, []],
  ] as const) {
    await tell(info);
    expect(store.health().reasons).toEqual(reasons);
  }
});

it('reports new data, with the reason, after a changed replication id or run id', async () => {
  const { store, news, tell } = await open();
  await store.start?.();
  news.length = 0;
  await tell({ used_memory: 60 });
  expect(news).toEqual([]);
  await tell({ used_memory: 61, master_replid: 'history-2' });
  expect(news).toEqual(['its replication id has changed, on the same process']);
  await tell({ run_id: 'run-2', master_replid: 'history-3' });
  expect(news.slice(1)).toEqual(['it was restarted, or another node is the primary']);
});
