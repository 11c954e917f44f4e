import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { digest, guardedKey, randomTag } from '../../../src/entity-tags/keys.ts';
import { RedisTagStore } from '../../../src/entity-tags/redis-store.ts';
import type { ReadStamp } from '../../../src/entity-tags/tag-store.ts';
import { connectRedis } from '../../../src/redis/connect-redis.ts';
import { mayTakeEffectAfter } from '../../../src/redis/faults.ts';
import type { Redis } from '../../../src/redis/redis.ts';
import { startFaultProxy } from '../../harness/fault-proxy.ts';
import { startCluster, startRedis, startSentinel, until } from '../../harness/redis-processes.ts';
import { clockedScripts, clockShiftKey, clockShiftKeyOf } from './clocked-scripts.ts';
import { describeTagStore, leaseMs, timesOf } from './tag-store.contract.ts';

const closing: Array<{ close(): Promise<void> }> = [];
function open<T extends { close(): Promise<void> }>(each: T): T {
  closing.push(each);
  return each;
}
afterAll(async () => {
  for (const each of closing.reverse()) await each.close();
});

async function connect(url: string, timeoutMs = 20_000): Promise<Redis> {
  const redis = open(connectRedis({ url, timeoutMs }));
  await until(async () => redis.ready(2000));
  return redis;
}

describe.each([
  ['single', () => startRedis({}), 0],
  ['sentinel', () => startSentinel({ replicas: 1 }), 1],
] as const)('redis: %s', (name, start, replicas) => {
  let redis: Redis;
  beforeAll(async () => {
    redis = await connect(open(await start()).url);
  });
  let created = 0;
  describeTagStore(name, async () => {
    created += 1;
    const store = new RedisTagStore({
      redis,
      times: timesOf(),
      replicas,
      keyPrefix: `test-${created}`,
      scripts: clockedScripts(),
    });
    const advance = async (ms: number) => {
      await redis.command('INCRBY', clockShiftKey, ms * 1000);
    };
    // warmUp returns the time left of the cold start, and 0 after it.
    expect(await store.warmUp()).toBeGreaterThan(0);
    await advance(leaseMs + 1000);
    expect(await store.warmUp()).toBe(0);
    return { store, advance };
  });
});

describe.concurrent('redis: cluster', () => {
  test('100 records in the 64 slots get a tag, and each grants one claim', async () => {
    const redis = await connect(open(await startCluster()).url);
    const scripts = clockedScripts([], { isCluster: true });
    const store = new RedisTagStore({ redis, times: timesOf(), scripts });
    expect(await store.warmUp()).toBeGreaterThan(0);
    for (let bucket = 0; bucket < 64; bucket += 1) {
      const shiftKey = clockShiftKeyOf(`shopward:{tags-${bucket}}:epoch`);
      await redis.command('SET', shiftKey, (leaseMs + 1000) * 1000);
    }
    expect(await store.warmUp()).toBe(0);
    const tag = 'a'.repeat(32);
    for (let i = 0; i < 100; i += 1) {
      const own = digest([`cluster ${i}`]);
      const key = i % 2 === 0 ? own : guardedKey('/carts', [String(i)], own);
      const startedAt = performance.now();
      await new Promise((resolve) => setTimeout(resolve, 1));
      const stamp = store.readStampAt(key, startedAt);
      expect(stamp).not.toBeNull();
      if (stamp === null) continue;
      const read = { variant: 'v', fingerprint: 'f', shopTag: null, isOfCollection: false };
      expect((await store.endRead(key, { ...read, stamp, newTag: tag }))?.tag).toBe(tag);
      expect(await store.claim(key, { token: 't', tags: [tag] })).toMatchObject({ kind: 'granted' });
      expect(await store.claim(key, { token: 'u', tags: [tag] })).toMatchObject({ kind: 'busy' });
    }
  });
});

// Each test starts its own Redis. The longest test comes first.
describe.concurrent('redis: the data', () => {
  const tag = 'a'.repeat(32);
  const key = digest(['one']);
  const [times, scripts] = [timesOf(), clockedScripts()];
  const passColdStart = (redis: Redis) => redis.command('INCRBY', clockShiftKey, (leaseMs + 1000) * 1000);
  /** A store whose cold start is over, and its Redis. */
  async function stage() {
    const redis = await connect(open(await startRedis({})).url);
    const store = new RedisTagStore({ redis, times, scripts });
    await store.warmUp();
    await passColdStart(redis);
    return { redis, store };
  }
  const read = { variant: 'v', fingerprint: 'f', newTag: tag, shopTag: null, isOfCollection: false };
  /** Replicas that are missing are waited for during half of this time. */
  const confirmMs = 6000;
  const withoutTag = { tagged: false, newTag: null, shopTag: null } as const;
  const readTag = async (store: RedisTagStore) => {
    const { stamp } = await store.lookUp(key);
    if (stamp === null) return null;
    return (await store.endRead(key, { ...read, stamp }))?.tag ?? null;
  };

  test('a cold start that begins during another one is reported too', async () => {
    const redis = await connect(open(await startRedis({})).url);
    const told: number[] = [];
    let passedMs = 0;
    const now = () => passedMs;
    const store = new RedisTagStore({ redis, times, scripts, now, onColdStart: (ms) => told.push(ms) });
    await store.warmUp();
    await store.warmUp();
    expect(told).toHaveLength(1);
    passedMs = 2_000;
    await redis.command('FLUSHDB');
    await store.warmUp();
    expect(told).toHaveLength(2);
  });

  test('after a failover: a cold start, and the old tag is invalid; without the replica: not-replicated', async () => {
    const group = open(await startSentinel({ replicas: 1 }));
    const redis = await connect(group.url, confirmMs);
    const store = new RedisTagStore({ redis, times, scripts, replicas: 1 });
    await store.warmUp();
    await passColdStart(redis);
    expect(await readTag(store)).toBe(tag);
    const ofTwo = new RedisTagStore({ redis, times, scripts, replicas: 2 });
    const other = digest(['cart', 'of two']);
    expect(await ofTwo.claim(other, { token: 't', tags: null })).toEqual({ kind: 'not-replicated' });
    await group.failover();
    await until(async () => (await store.lookUp(key)).unsettled === 'cold-start');
    await passColdStart(redis);
    const claim = () => store.claim(key, { token: 't', tags: [tag] });
    // The connection for claims may not have reached the new primary yet.
    await until(async () => (await claim()).kind === 'not-current');
    await until(async () => (await readTag(store)) === tag);
    const primary = await group.primary();
    for (const server of group.servers) if (server !== primary) server.pause();
    expect(await claim()).toEqual({ kind: 'not-replicated' });
  });

  test('new, flushed and restarted: no tag and no claim for one lease, then old tags are invalid', async () => {
    const server = open(await startRedis({}));
    const redis = await connect(server.url);
    const store = new RedisTagStore({ redis, times, scripts });
    const wipes = [
      () => redis.command('PING'),
      () => redis.command('FLUSHALL'),
      async () => server.process?.restart(),
    ];
    for (const wipe of wipes) {
      await wipe();
      await until(async () => (await store.lookUp(key)).unsettled === 'cold-start');
      expect(await readTag(store)).toBeNull();
      expect(await store.claim(key, { token: 't', tags: [tag] })).toMatchObject({ kind: 'cold-start' });
      expect(await store.claim(key, { token: 't', tags: null })).toMatchObject({ kind: 'cold-start' });
      await passColdStart(redis);
      expect((await store.lookUp(key)).unsettled).toBe(null);
      expect(await store.claim(key, { token: 't', tags: [tag] })).toEqual({ kind: 'not-current' });
      expect(await readTag(store)).toBe(tag);
    }
  });

  test('100 refused or unsent writes of unknown resources leave no key', async () => {
    const { redis, store } = await stage();
    const before = await redis.command('DBSIZE');
    for (const outcome of ['refused', 'unsent'] as const) {
      for (let i = 0; i < 50; i += 1) {
        const nobodys = digest([outcome, String(i)]);
        expect(await store.claim(nobodys, { token: 't', tags: null })).toMatchObject({ kind: 'granted' });
        await store.end(nobodys, { ...withoutTag, token: 't', outcome });
      }
    }
    expect(await redis.command('DBSIZE')).toBe(before);
  });

  /** The number of EVALSHA calls since the start of Redis. */
  const countScripts = async (redis: Redis) =>
    Number(/cmdstat_evalsha:calls=(\d+)/.exec(String(await redis.command('INFO', 'commandstats')))?.[1] ?? 0);

  test('100 operations in one tick of the event loop are two scripts, of at most 64; each gets the answer for its record', async () => {
    const { redis, store } = await stage();
    const named = Array.from({ length: 100 }, (_, i) => ({ one: digest([`${i}`]), newTag: randomTag() }));
    const { stamp } = await store.lookUp(key);
    if (stamp === null) throw new Error('still cold');
    const before = await countScripts(redis);
    const given = await Promise.all(
      named.map(({ one, newTag }) => store.endRead(one, { ...read, stamp, newTag })),
    );
    expect(given.map((each) => each?.tag)).toEqual(named.map(({ newTag }) => newTag));
    expect((await countScripts(redis)) - before).toBe(2);
    // In the order of the calls: the change comes between the two look-ups.
    const one = named[0]?.one ?? key;
    const [tagged, , untagged] = await Promise.all([
      store.lookUp(one),
      store.end(one, { ...withoutTag, token: 't', outcome: 'applied' }),
      store.lookUp(one),
    ]);
    expect([tagged.tag, untagged.tag]).toEqual([named[0]?.newTag, null]);
  });

  test('80 claims in one tick are two scripts, and each gets its own answer', async () => {
    const { redis, store } = await stage();
    const carts = Array.from({ length: 40 }, (_, i) => digest([`cart ${i}`]));
    const twice = [...carts, ...carts];
    const broken = carts[7] ?? key;
    await redis.command('SET', `shopward:{tags-0}:${broken}`, 'x');
    const isBroken = (i: number) => twice[i] === broken;
    // After this claim the server's clock and the script are known.
    await store.claim(key, { token: 'warm', tags: null });
    const [before, made] = [await countScripts(redis), redis.status().claims.made];
    const claimed = await Promise.allSettled(
      twice.map((cart, i) => store.claim(cart, { token: `t${i}`, tags: i < 40 ? null : [tag] })),
    );
    expect((await countScripts(redis)) - before).toBe(2);
    expect(redis.status().claims.made - made).toBe(80);
    for (const [i, each] of claimed.entries()) {
      const kind = each.status === 'fulfilled' ? each.value.kind : each.reason.word;
      // A tag that is not current is refused as such, even during a lease.
      expect(kind).toBe(isBroken(i) ? 'error' : i < 40 ? 'granted' : 'not-current');
    }
  });

  test('claims whose reply is lost: each one took effect, and mayTakeEffectAfter is true, so that it can be released', async () => {
    const server = open(await startRedis({}));
    const way = open(await startFaultProxy(server.process?.port ?? 0));
    // The claims must reach Redis within this time. Without a reply their callers wait until it is over.
    const redis = await connect(`redis://127.0.0.1:${way.port}`, 5000);
    const direct = await connect(server.url);
    const [store, beside] = [redis, direct].map((each) => new RedisTagStore({ redis: each, times, scripts }));
    if (store === undefined || beside === undefined) throw new Error('two stores');
    await store.warmUp();
    await passColdStart(direct);
    const carts = ['x', 'y', 'z'].map((name) => digest([name]));
    await store.claim(key, { token: 'warm', tags: null });
    await way.set({ toClient: { drop: true } });
    const claimed = await Promise.allSettled(
      carts.map((cart, i) => store.claim(cart, { token: `t${i}`, tags: null })),
    );
    for (const [i, each] of claimed.entries()) {
      const fault = each.status === 'rejected' ? each.reason : undefined;
      // Each claim took effect.
      expect((await beside.lookUp(carts[i] ?? key)).unsettled).toBe('lease');
      expect(await mayTakeEffectAfter(fault)).toBe(true);
      await beside.end(carts[i] ?? key, { ...withoutTag, token: `t${i}`, outcome: 'unsent' });
      expect((await beside.lookUp(carts[i] ?? key)).unsettled).toBeNull();
    }
  });

  test('a broken record fails its own look-ups, not others in the same tick', async () => {
    const { redis, store } = await stage();
    expect(await readTag(store)).toBe(tag);
    const [otherType, otherForm] = [digest(['type']), digest(['form'])];
    await redis.command('SET', `shopward:{tags-0}:${otherType}`, 'x');
    const epoch = await redis.command('GET', 'shopward:{tags-0}:epoch');
    await redis.command('HSET', `shopward:{tags-0}:${otherForm}`, 'e', String(epoch));
    const looks = [key, otherType, key, otherForm, key].map((each) => store.lookUp(each));
    const results = await Promise.allSettled(looks);
    expect(results.map((each) => (each.status === 'fulfilled' ? each.value.tag : each.reason.word))).toEqual([
      tag,
      'error',
      tag,
      'error',
      tag,
    ]);
  });

  test('a record without one of its fields fails its own claims, not others in the same tick', async () => {
    const { redis, store } = await stage();
    for (const field of 't s ls w a p q qt c'.split(' ')) {
      const [broken, other] = [digest(['broken', field]), digest(['other', field])];
      const { stamp } = await store.lookUp(broken);
      if (stamp !== null) await store.endRead(broken, { ...read, stamp });
      await redis.command('HDEL', `shopward:{tags-0}:${broken}`, field);
      const claims = [broken, other].map((each) => store.claim(each, { token: 'c', tags: null }));
      const [, result] = await Promise.allSettled(claims);
      expect(result, field).toEqual({ status: 'fulfilled', value: { kind: 'granted', shopTag: null } });
    }
  });

  test('in a full Redis a recorded member keeps its tag, a new one gets neither tag nor claim', async () => {
    const { redis, store } = await stage();
    await readTag(store);
    const other = digest(['two']);
    await redis.command('CONFIG', 'SET', 'maxmemory', 1);
    expect(await readTag(store)).toBe(tag);
    const { stamp } = await store.lookUp(other);
    const tried = [
      store.endRead(other, { ...read, stamp: stamp as ReadStamp }),
      store.claim(other, { token: 'c', tags: null }),
    ];
    for (const each of tried) await expect(each).rejects.toMatchObject({ word: 'oom' });
    // A change is recorded all the same, also in the same tick.
    const [isNew] = await Promise.allSettled([
      store.endRead(other, { ...read, stamp: stamp as ReadStamp }),
      store.end(key, { ...withoutTag, token: 'none', outcome: 'applied' }),
    ]);
    expect(isNew.status).toBe('rejected');
    expect((await store.lookUp(key)).tag).toBeNull();
  });

  test('expiry: minutes after an anonymous write, an hour after an anonymous read, a day for users, twice as long for a guarded collection', async () => {
    const { redis, store } = await stage();
    const leftMs = async (of = key) => Number(await redis.command('PTTL', `shopward:{tags-0}:${of}`));
    const readAs = async (isAnonymous: boolean, fingerprint: string) => {
      await redis.command('INCRBY', clockShiftKey, 1);
      const { stamp } = await store.lookUp(key);
      if (stamp !== null) await store.endRead(key, { ...read, stamp, fingerprint, isAnonymous });
    };
    const mark = { ...withoutTag, token: 'none', outcome: 'applied' } as const;
    await store.end(key, { ...mark, isAnonymous: true, isOpen: true });
    // Longer than any read that began before the write.
    expect(await leftMs()).toBeGreaterThan(times.longestReadMs);
    expect(await leftMs()).toBeLessThanOrEqual(times.longestReadMs * 2);
    await readAs(true, 'f');
    expect(await leftMs()).toBeGreaterThan(3_000_000);
    expect(await leftMs()).toBeLessThanOrEqual(3_600_000);
    await store.end(key, { ...mark, isAnonymous: true, isOpen: true });
    expect(await leftMs()).toBeGreaterThan(3_000_000);
    await store.claim(key, { token: 't', tags: null, isAnonymous: true });
    await store.end(key, {
      ...{ token: 't', tagged: false, outcome: 'applied', newTag: tag, shopTag: null, isAnonymous: true },
    });
    expect(await leftMs()).toBeLessThanOrEqual(3_600_000);
    await readAs(false, 'g');
    expect(await leftMs()).toBeGreaterThan(20 * 3_600_000);
    await readAs(true, 'h');
    expect(await leftMs()).toBeGreaterThan(20 * 3_600_000);
    // A read extends the expiry, even if nothing changes.
    await redis.command('PEXPIRE', `shopward:{tags-0}:${key}`, 60_000);
    await readAs(false, 'h');
    expect(await leftMs()).toBeGreaterThan(20 * 3_600_000);
    // If the collection expired first, an older state of a member would be valid again.
    const member = guardedKey('/c', [], key);
    await store.claim(member, { token: 'u', tags: null });
    expect(await leftMs(guardedKey('/c', []))).toBeGreaterThan(1.9 * (await leftMs(member)));
  });

  describe('the clock of Redis is set', () => {
    const hourMs = 3_600_000;
    async function start(oldMs: number) {
      const redis = await connect(open(await startRedis({})).url);
      const store = new RedisTagStore({ redis, times, scripts });
      const advance = (ms: number) => redis.command('INCRBY', clockShiftKey, ms * 1000);
      await store.warmUp();
      await advance(oldMs);
      return { store, advance };
    }
    const stampOf = async (store: RedisTagStore) => (await store.lookUp(key)).stamp;
    const endRead = (store: RedisTagStore, stamp: ReadStamp | null) =>
      stamp && store.endRead(key, { ...read, stamp });

    test('back to before the start of the store: a cold start of one lease', async () => {
      const { store, advance } = await start(leaseMs + 1000);
      expect(await readTag(store)).toBe(tag);
      await advance(-hourMs);
      expect(await store.claim(key, { token: 't', tags: [tag] })).toMatchObject({ kind: 'cold-start' });
      await advance(leaseMs + 1);
      expect(await store.claim(key, { token: 't', tags: [tag] })).toEqual({ kind: 'not-current' });
      expect(await readTag(store)).toBe(tag);
      expect(await store.claim(key, { token: 't', tags: [tag] })).toMatchObject({ kind: 'granted' });
    });

    test('back by an hour: a resource that was written before gets a tag again', async () => {
      const { store, advance } = await start(2 * hourMs);
      await store.claim(key, { token: 't', tags: null });
      await store.end(key, { ...withoutTag, token: 't', outcome: 'applied' });
      await advance(-hourMs);
      await store.lookUp(key);
      await advance(1);
      const stamp = await stampOf(store);
      await advance(1);
      expect(await endRead(store, stamp)).toMatchObject({ tag });
    });

    test('back during a read that a write overtakes: no tag', async () => {
      const { store, advance } = await start(2 * hourMs);
      const early = await stampOf(store);
      await advance(-hourMs);
      await store.claim(key, { token: 't', tags: null });
      await store.end(key, { ...withoutTag, token: 't', outcome: 'applied' });
      expect(await endRead(store, early)).toBeNull();
    });

    test('back during a claim without an end: busy, and free after ten minutes', async () => {
      const { store, advance } = await start(2 * hourMs);
      expect(await readTag(store)).toBe(tag);
      await store.claim(key, { token: 'gone', tags: [tag] });
      await advance(-hourMs);
      expect(await store.claim(key, { token: 't', tags: null })).toMatchObject({ kind: 'busy' });
      await advance(600_001);
      expect(await store.claim(key, { token: 't', tags: null })).toMatchObject({ kind: 'granted' });
    });

    test('back after an unknown write: indeterminate, and free after ten minutes', async () => {
      const { store, advance } = await start(2 * hourMs);
      await store.claim(key, { token: 't', tags: null });
      await store.end(key, { token: 't', tagged: true, outcome: 'unknown', newTag: null, shopTag: null });
      await advance(-hourMs);
      expect((await store.lookUp(key)).unsettled).toBe('indeterminate');
      await advance(600_001);
      expect((await store.lookUp(key)).unsettled).toBe(null);
    });

    test('back while a writer waits or a user has priority: both still end after their usual time', async () => {
      const { store, advance } = await start(4 * hourMs);
      const open = (token: string) => store.claim(key, { token, tags: null, isOpen: true });
      expect(await readTag(store)).toBe(tag);
      await store.claim(key, { token: 'child', tags: null });
      // This claim waits for the write below the member: for half a second no other write is granted.
      expect(await store.claim(key, { token: 't', tags: [tag] })).toMatchObject({ kind: 'busy' });
      await store.end(key, { ...withoutTag, token: 'child', outcome: 'unsent' });
      await advance(-hourMs);
      expect(await open('s')).toMatchObject({ kind: 'busy', remainingMs: 500 });
      expect(await store.claim(key, { token: 'u', tags: null })).toMatchObject({ kind: 'busy' });
      await advance(500);
      expect(await open('s')).toMatchObject({ kind: 'granted' });

      const early = await stampOf(store);
      const write = { ...withoutTag, token: 's', outcome: 'applied' } as const;
      await store.end(key, { ...write, isOpen: true });
      // An anonymous client's write made this read fail: for a third of a lease anonymous clients wait.
      expect(await endRead(store, early)).toBeNull();
      expect(await open('s')).toMatchObject({ kind: 'busy' });
      await advance(-hourMs);
      expect(await open('s')).toMatchObject({ kind: 'busy' });
      await advance(leaseMs / 3 - 1);
      expect(await open('s')).toMatchObject({ kind: 'busy' });
      await advance(1);
      expect(await open('s')).toMatchObject({ kind: 'granted' });
    });

    test('forward: leases end at once, and their resources have no tag', async () => {
      const { store, advance } = await start(leaseMs + 1000);
      expect(await readTag(store)).toBe(tag);
      await store.claim(key, { token: 't', tags: [tag] });
      await advance(hourMs);
      expect(await store.claim(key, { token: 'u', tags: [tag] })).toEqual({ kind: 'not-current' });
      await store.end(key, { token: 't', tagged: true, outcome: 'applied', newTag: tag, shopTag: null });
      expect((await store.lookUp(key)).tag).toBeNull();
    });
  });

  test('a write without a lease is granted only if the replica confirms', async () => {
    const primary = open(await startRedis({}));
    const replica = open(await startRedis({ settings: { replicaof: `127.0.0.1 ${primary.process?.port}` } }));
    const redis = await connect(primary.url, confirmMs);
    const store = new RedisTagStore({ redis, times, scripts, replicas: 1 });
    await store.warmUp();
    await passColdStart(redis);
    const claim = () => store.claim(key, { token: 's', tags: null, isOpen: true });
    await until(async () => (await claim()).kind === 'granted');
    // All earlier writes are confirmed, so WAIT alone would confirm a claim that writes nothing.
    await until(async () => {
      const info = String(await redis.command('INFO', 'replication'));
      const offset = /master_repl_offset:(\d+)/.exec(info)?.[1];
      return info.includes(`state=online,offset=${offset},`);
    });
    replica.process?.pause();
    expect(await claim()).toEqual({ kind: 'not-replicated' });
    replica.process?.resume();
  });

  /** The store of a version that knows these record forms, with `form` in force. */
  const versioned = (redis: Redis, oldest: number, newest: number, form: () => number) =>
    new RedisTagStore({ redis, times, form, scripts: clockedScripts([], { forms: { oldest, newest } }) });

  test('two versions without a common form: each one finds a cold start, and gets no tag and no claim', async () => {
    const redis = await connect(open(await startRedis({})).url);
    const one = versioned(redis, 6, 6, () => 6);
    const other = versioned(redis, 8, 8, () => 8);
    await one.warmUp();
    await passColdStart(redis);
    expect(await readTag(one)).toBe(tag);
    for (const store of [other, one, other, one]) {
      expect(await store.lookUp(key)).toMatchObject({ tag: null, unsettled: 'cold-start' });
      expect(await store.claim(key, { token: 't', tags: [tag] })).toMatchObject({ kind: 'cold-start' });
    }
  });
});
