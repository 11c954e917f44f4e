import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, type TestContext, test } from 'vitest';
import type { Redis } from '../../../src/redis/redis.ts';
import { newFamily } from '../../../src/refresh-tokens/issue.ts';
import { RedisTokenStore } from '../../../src/refresh-tokens/redis-store.ts';
import { createDigests } from '../../../src/refresh-tokens/token-digest.ts';
import type { TokenDigest } from '../../../src/refresh-tokens/token-values.ts';
import { closingAtEnd } from '../../harness/closing-at-end.ts';
import { startRedis } from '../../harness/redis-processes.ts';
import { all } from './store-contract.ts';
import { connect } from './stores.ts';
import {
  defaultLifetimeMs,
  startDemoShop,
  startTokenFront,
  type TokenFront,
  tokenClient,
} from './token-front.ts';

const storeTimes = { lifetimeMs: defaultLifetimeMs, retentionMs: 'keep' } as const;
const digestKey = 'a key of this deployment';

async function stage(context: Pick<TestContext, 'onTestFinished'>) {
  const open = closingAtEnd(context);
  const shop = open(await startDemoShop());
  /** A replica with its own connection, filter and proxy. */
  async function startReplica(url: string, timeoutMs?: number) {
    const redis: Redis = open(await connect(url, timeoutMs));
    const store = new RedisTokenStore({ ...storeTimes, redis });
    const front: TokenFront = open(await startTokenFront(shop, store, { digestKey }));
    return { redis, store, front, ...tokenClient(front.port) };
  }
  return { open, shop, startReplica };
}

describe.concurrent('the data in Redis', () => {
  test('contain no token, no user and no unkeyed digest of either, in memory and on disk', async (context) => {
    const { open, shop, startReplica } = await stage(context);
    const server = open(await startRedis({ settings: {} }));
    const { signIn, refresh, revoke, redis } = await startReplica(server.url);
    const one = await signIn();
    const two = (await refresh(one.refreshToken)).json.data.attributes;
    await revoke(two.accessToken, two.refreshToken);
    await revoke(two.accessToken, 'mine');
    await revoke(two.accessToken, 'def50200unknown');
    const unknown = await tokenClient(shop.port).signIn('karl@shop.example');
    await refresh(unknown.refreshToken);

    const dump = await dumpOf(redis);
    await redis.command('SAVE');
    const directory = server.process?.directory ?? '';
    const file = readFileSync(join(directory, 'dump.rdb')).toString('latin1');
    const secrets = [one, two, unknown].flatMap(({ accessToken, refreshToken }) => [
      accessToken,
      refreshToken,
    ]);
    secrets.push('DE--21', 'sonia', 'customer_reference', 'def50200');
    for (const secret of [...secrets]) {
      for (const algorithm of ['sha256', 'sha1', 'md5']) {
        const digest = createHash(algorithm).update(secret);
        secrets.push(digest.copy().digest('hex'), digest.copy().digest('base64url'));
      }
    }
    expect(dump).toContain('tokens-');
    expect(secrets.filter((secret) => dump.includes(secret) || file.includes(secret))).toEqual([]);
    // The search works: it finds the keyed digest.
    expect(dump).toContain(createDigests(digestKey).ofToken(one.refreshToken));
  });

  test('expire after the retention; with retention keep they do not expire', async (context) => {
    const open = closingAtEnd(context);
    const redis = open(await connect(open(await startRedis({ settings: {} })).url));
    const { ofToken, ofSubject } = createDigests();
    const [token, subject] = [ofToken('a token'), ofSubject('a user')];
    const family = newFamily();
    const use = { family, answer: null };
    const lifetimeMs = 1500;
    const brief = new RedisTokenStore({ redis, lifetimeMs, retentionMs: 1500 });
    const { generation } = await brief.generationFor(subject, lifetimeMs);
    await brief.record(token, { subject, generation, family, lifetimeMs });
    await brief.noteRevocation(ofToken('unknown'), subject, 'r');
    await brief.claim(ofToken('claimed'), 'c', 100);
    expect(await all(brief.list(subject))).toHaveLength(1);
    await context.expect.poll(async () => (await all(brief.list())).length).toBe(0);
    await brief.markUsed(token, { ...use, owner: null });
    // These were written after the record, so they expire after it.
    for (const gone of ['unknown', 'claimed']) {
      await context.expect.poll(() => dumpOf(redis)).not.toContain(ofToken(gone));
    }

    const keeping = new RedisTokenStore({ redis, lifetimeMs: 1, retentionMs: 'keep' });
    await keeping.record(token, { subject, generation, family, lifetimeMs: 1 });
    await keeping.markUsed(ofToken('another'), { ...use, owner: subject });
    expect(Number(await redis.command('PTTL', await keyOf(redis, ofToken('another'))))).toBe(-1);
  });

  test('a subject and an ended family expire after the retention, and not before their tokens', async (context) => {
    const open = closingAtEnd(context);
    const redis = open(await connect(open(await startRedis({ settings: {} })).url));
    const hourMs = 3_600_000;
    const use = async (retentionMs: number | 'keep') => {
      const store = new RedisTokenStore({ redis, lifetimeMs: hourMs, retentionMs });
      const subject = createDigests().ofSubject('a user');
      await store.generationFor(subject, 3 * hourMs);
      const noted = await store.noteRevocationOfAll(subject, 'op');
      await store.concludeRevocationOfAll(subject, 'op', noted, true);
      await store.endFamily(newFamily(), 3 * hourMs);
    };
    await use(hourMs);
    const keys = (await redis.command('KEYS', '*')) as string[];
    expect(keys.map((key) => key.split(':')[2]).sort()).toEqual(['family', 'subject']);
    const leftOf = (key: string) => redis.command('PTTL', key).then(Number);
    for (const key of keys) {
      expect(await leftOf(key), key).toBeGreaterThan(3 * hourMs);
      expect(await leftOf(key), key).toBeLessThanOrEqual(4 * hourMs);
    }
    await use('keep');
    for (const key of keys.filter((each) => !each.includes(':family:')))
      expect(await leftOf(key), key).toBe(-1);
  });
});

async function dumpOf(redis: Redis): Promise<string> {
  const keys = (await redis.command('KEYS', '*')) as string[];
  const values = await Promise.all(
    keys.map(async (key) => {
      const type = await redis.command('TYPE', key);
      return type === 'string'
        ? redis.command('GET', key)
        : redis.command('ZRANGE', key, 0, -1, 'WITHSCORES');
    }),
  );
  return JSON.stringify([keys, values]);
}

async function keyOf(redis: Redis, digest: TokenDigest): Promise<string> {
  const [key = ''] = (await redis.command('KEYS', `*${digest}`)) as string[];
  return key;
}
