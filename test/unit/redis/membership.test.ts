import { type TestContext, describe, expect, test } from 'vitest';
import { connectRedis } from '../../../src/redis/connect-redis.ts';
import {
  type Member,
  Membership,
  guardRedis,
  memberTtlMs,
  recordForms,
} from '../../../src/redis/membership.ts';
import type { Redis } from '../../../src/redis/redis.ts';
import { closingAtEnd } from '../../harness/closing-at-end.ts';
import { startCluster, startRedis, until } from '../../harness/redis-processes.ts';

const shop: Member = {
  version: '1',
  forms: recordForms,
  owner: 'shop',
  leaseMs: 2000,
  tracked: ['PATCH /carts/{}'],
  digestKey: 'a',
};

function opening(context: TestContext) {
  const open = closingAtEnd(context);
  async function connect(url: string): Promise<Redis> {
    // Long: no test here is about the deadline.
    const redis = open(connectRedis({ url, timeoutMs: 20_000 }));
    await until(async () => redis.ready(1000));
    return redis;
  }
  const single = async () => connect(open(await startRedis({})).url);
  async function join(redis: Redis, more: Partial<Member> = {}, prefix = 'p') {
    const heard = { problems: [] as string[][], newStores: 0, skippedMs: 0 };
    const membership = open(
      new Membership({
        redis,
        prefix,
        member: { ...shop, ...more },
        onProblems: (problems) => void heard.problems.push([...problems]),
        onNewStore: () => {
          heard.newStores += 1;
        },
        now: () => performance.now() + heard.skippedMs,
      }),
    );
    await membership.announce();
    return Object.assign(heard, { membership });
  }
  return { open, connect, single, join };
}

/** Moves the announcements of all members into the past. */
const age = (redis: Redis, ms: number) =>
  redis.command(
    'EVAL',
    `
local flat = redis.call('HGETALL', KEYS[1])
for i = 1, #flat, 2 do
  local seen, said = string.match(flat[i + 1], '^(%d+)|(.*)$')
  redis.call('HSET', KEYS[1], flat[i], string.format('%.0f', seen - ARGV[1]) .. '|' .. said)
end`,
    '1',
    'p:{members}',
    String(ms),
  );

/** Announces the member until `isSo`: `announce` may return the promise of an earlier announcement. */
const announceUntil = ({ membership }: { membership: Membership }, isSo: () => boolean) =>
  until(async () => {
    await membership.announce();
    return isSo();
  });

describe.concurrent('processes that share a store', () => {
  test('an unreadable entry is reported after memberTtlMs, until it is deleted', async (context) => {
    const { single, join } = opening(context);
    const redis = await single();
    const first = await join(redis);
    await redis.command('HSET', 'p:{members}', 'x', 'written by another program');
    await expect(first.membership.announce()).rejects.toThrow();
    expect([first.membership.overdue(), first.membership.refusesTags()]).toEqual([[], undefined]);
    first.skippedMs = memberTtlMs;
    expect(first.membership.refusesTags()).toBe('settings');
    await expect(first.membership.announce()).rejects.toThrow();
    expect(first.membership.overdue().join()).toMatch(/^the key p:\{members\} cannot be read/);
    await redis.command('DEL', 'p:{members}');
    await first.membership.announce();
    expect([first.membership.overdue(), first.membership.refusesTags()]).toEqual([[], undefined]);
  });

  test('20,000 members with another lease and other methods are read', async (context) => {
    const { single, join } = opening(context);
    const redis = await single();
    // Announced in the future, so that no member has expired when the list is read.
    const announceAll = `
local now = redis.call('TIME')[1] * 1000 + ARGV[2]
for i = 1, 20000 do
  redis.call('HSET', KEYS[1], 'member' .. i, string.format('%.0f', now) .. '|' .. string.gsub(ARGV[1], 'THIS', i))
end`;
    const said = JSON.stringify({ ...shop, leaseMs: 60_000, tracked: ['PATCH /THIS/{}'] });
    await redis.command('EVAL', announceAll, '1', 'p:{members}', said, String(memberTtlMs - 1000));
    const { membership } = await join(redis);
    expect(membership.agreement()).toMatchObject({ untracked: ['PATCH /carts/{}'], coldStartMs: 60_000 });
  });

  test('the cold start is the longest lease of all members, even after its process has ended and Redis was flushed', async (context) => {
    const { single, join } = opening(context);
    const redis = await single();
    const long = await join(redis, { leaseMs: 60_000 });
    const short = await join(redis);
    expect(short.membership.coldStartMs()).toBe(60_000);
    expect(short.problems[0]?.join()).toMatch(/lease differs/);
    long.membership.close();
    await redis.command('FLUSHALL');
    await announceUntil(short, () => short.membership.agreement()?.coldStartMs === 2000);
    expect(short.membership.coldStartMs()).toBe(60_000);
  });

  test('with a lease of one second the cold start lasts four', async (context) => {
    const { single, join } = opening(context);
    expect((await join(await single(), { leaseMs: 1000 })).membership.coldStartMs()).toBe(4000);
  });

  test('of two digest keys the first is in force until its process is gone; if that process returns, it is refused', async (context) => {
    const { single, join } = opening(context);
    const redis = await single();
    const old = await join(redis);
    const next = await join(redis, { digestKey: 'b' });
    for (let round = 0; round < 5; round += 1) {
      await next.membership.announce();
      await old.membership.announce();
      expect([old.membership.refusesTokens(), next.membership.refusesTokens()]).toEqual([
        undefined,
        'settings',
      ]);
    }
    old.membership.close();
    await age(redis, memberTtlMs);
    await until(async () => next.membership.refusesTokens() === undefined);
    // The first process returns, after it was stopped for longer than the others remember it.
    old.skippedMs = memberTtlMs;
    expect(old.membership.refusesTokens()).toBe('settings');
    await old.membership.announce();
    expect([old.membership.refusesTokens(), next.membership.refusesTokens()]).toEqual([
      'settings',
      undefined,
    ]);
  });

  test('the methods of a killed process count until its lease is over', async (context) => {
    const { single, join } = opening(context);
    const redis = await single();
    const killed = await join(redis, { tracked: [], leaseMs: 60_000 });
    killed.membership.close();
    await age(redis, memberTtlMs + 30_000);
    const next = await join(redis);
    expect(next.membership.agreement()?.untracked).toEqual(shop.tracked);
    await age(redis, 40_000);
    await announceUntil(next, () => next.membership.agreement()?.untracked.length === 0);
  });

  test('two seconds before the others forget it, a process refuses commands until it has announced itself again', async (context) => {
    const { single, join } = opening(context);
    const redis = await single();
    const one = await join(redis);
    const guarded = guardRedis(redis, () => one.membership.refusesTags());
    expect(await guarded.command('PING')).toBe('PONG');
    one.skippedMs = memberTtlMs - 2000;
    await expect(guarded.command('PING')).rejects.toMatchObject({ word: 'settings' });
    await until(async () => (await guarded.command('PING')) === 'PONG');
  });

  test('in a Cluster members see each other', async (context) => {
    const { open, connect, join } = opening(context);
    const redis = await connect(open(await startCluster()).url);
    const one = await join(redis);
    const other = await join(redis, { leaseMs: 7000 });
    expect([one.newStores, other.membership.coldStartMs()]).toEqual([1, 7000]);
  });
});
