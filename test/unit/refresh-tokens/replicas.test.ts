import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, type TestContext, test } from 'vitest';
import { startDemoShop } from '../../../demo/shop.ts';
import type { Redis } from '../../../src/redis/redis.ts';
import { newFamily } from '../../../src/refresh-tokens/issue.ts';
import { RedisTokenStore } from '../../../src/refresh-tokens/redis-store.ts';
import { createDigests } from '../../../src/refresh-tokens/token-digest.ts';
import type { TokenDigest } from '../../../src/refresh-tokens/token-values.ts';
import { closingAtEnd } from '../../harness/closing-at-end.ts';
import { startRedis } from '../../harness/redis-processes.ts';
import { callShop, jsonOf, outcomeOf } from '../../harness/shop-client.ts';
import { startShopwardHere } from '../../harness/shopward-here.ts';
import { all, newSubject, newToken } from './store-contract.ts';
import { connect } from './stores.ts';

const digestKey = 'a key of this deployment';
const prefix = 'shopward';
const hourMs = 3_600_000;

/** A proxy in front of the demo shop, and its Redis. */
async function stage(context: Pick<TestContext, 'onTestFinished'>) {
  const open = closingAtEnd(context);
  const shop = open(await startDemoShop());
  const server = open(await startRedis({ settings: {} }));
  const redis = open(await connect(server.url));
  const shopward = await startShopwardHere({
    upstream: shop.url,
    config: {
      auth: { keys: { jwks: shop.jwksUrl }, subject: 'sub.customer_reference' },
      store: { url: server.url, timeout: '3s', prefix },
      refreshTokens: { digestKey },
    },
  });
  open({ close: () => shopward.stop() });
  const body = (type: string, attributes: object) => ({ data: { type, attributes } });
  const signIn = async (port = shopward.port, username = 'sonia@shop.example') => {
    const sent = body('access-tokens', { username, password: 'change123' });
    return jsonOf(await callShop(port, 'POST /access-tokens', { body: sent })).data.attributes;
  };
  const refresh = (refreshToken: string) =>
    callShop(shopward.port, 'POST /refresh-tokens', { body: body('refresh-tokens', { refreshToken }) });
  const revoke = (token: string, which: string) =>
    callShop(shopward.port, `DELETE /refresh-tokens/${which}`, { token });
  return { shop, server, redis, signIn, refresh, revoke };
}

describe.concurrent('a refresh', () => {
  test('that got 503 from a paused Redis leaves no claim: 201 after Redis resumes', async (context) => {
    const { shop, server, signIn, refresh } = await stage(context);
    const { refreshToken } = await signIn();
    server.process?.pause();
    const away = '503 token-store-unavailable';
    for (let i = 0; i < 3; i += 1) expect(outcomeOf(await refresh(refreshToken))).toBe(away);
    expect(shop.received.byRoute.get('POST /refresh-tokens')).toBeUndefined();
    server.process?.resume();
    const said = new Set<string>();
    const next = async () => {
      const outcome = outcomeOf(await refresh(refreshToken));
      said.add(outcome);
      return outcome;
    };
    await context.expect.poll(next).toBe('201');
    // A late claim would show as refresh-token-busy, a late mark as 401.
    expect([...said].filter((outcome) => outcome !== '201' && outcome !== away)).toEqual([]);
  });

  test('of an unknown token that the shop refuses leaves no key', async (context) => {
    const { redis, refresh } = await stage(context);
    for (let i = 0; i < 20; i += 1) expect(outcomeOf(await refresh(`def50200${i}`))).toBe('401 004');
    expect(await redis.command('KEYS', '*tokens*')).toEqual([]);
  });
});

describe.concurrent('the data in Redis', () => {
  test('contain no token, no user and no unkeyed digest of either, in memory and on disk', async (context) => {
    const { shop, server, redis, signIn, refresh, revoke } = await stage(context);
    const one = await signIn();
    const two = jsonOf(await refresh(one.refreshToken)).data.attributes;
    await revoke(two.accessToken, two.refreshToken);
    await revoke(two.accessToken, 'mine');
    await revoke(two.accessToken, 'def50200unknown');
    const unknown = await signIn(shop.port, 'karl@shop.example');
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
    expect(secrets.filter((secret) => dump.includes(secret) || file.includes(secret))).toEqual([]);
    // The search works: it finds the keyed digest.
    expect(dump).toContain(createDigests(digestKey).ofToken(one.refreshToken));
  });

  test('keep a note about an unknown token for a day', async (context) => {
    const open = closingAtEnd(context);
    const redis = open(await connect(open(await startRedis({ settings: {} })).url));
    const store = new RedisTokenStore({ redis, lifetimeMs: 9e9, retentionMs: 'keep' });
    expect(await store.noteRevocation(newToken(), newSubject(), 'r')).toBe('noted');
    const [key = '', ...others] = (await redis.command('KEYS', '*')) as string[];
    expect(others).toEqual([]);
    expect(await hoursLeft(redis, key)).toBe(24);
  });

  test('expire after the retention; with retention keep they do not expire', async (context) => {
    const open = closingAtEnd(context);
    const redis = open(await connect(open(await startRedis({ settings: {} })).url));
    const { ofToken, ofSubject } = createDigests();
    const [token, subject] = [ofToken('a token'), ofSubject('a user')];
    const family = newFamily();
    const hoursOf = async (digest: TokenDigest) => hoursLeft(redis, await keyOf(redis, digest));
    const [lifetimeMs, retentionMs] = [hourMs, 2 * hourMs];
    const brief = new RedisTokenStore({ redis, lifetimeMs, retentionMs });
    const { generation } = await brief.generationFor(subject, lifetimeMs);
    await brief.record(token, { subject, generation, family, lifetimeMs });
    await brief.noteRevocation(ofToken('unknown'), subject, 'r');
    await brief.claim(ofToken('claimed'), 'c', hourMs);
    const hours = [token, ofToken('unknown'), ofToken('claimed')].map(hoursOf);
    expect(await Promise.all(hours)).toEqual([3, 1, 1]);
    expect(await all(brief.list(subject))).toHaveLength(1);
    // As if its time were over.
    await redis.command('DEL', await keyOf(redis, token));
    expect(await all(brief.list())).toEqual([]);

    const keeping = new RedisTokenStore({ redis, lifetimeMs: 1, retentionMs: 'keep' });
    await keeping.record(token, { subject, generation, family, lifetimeMs: 1 });
    await keeping.markUsed(ofToken('another'), { family, answer: null, owner: subject });
    expect([await hoursOf(token), await hoursOf(ofToken('another'))]).toEqual(['endless', 'endless']);
  });

  test('a subject and an ended family expire after the retention of their tokens', async (context) => {
    const open = closingAtEnd(context);
    const redis = open(await connect(open(await startRedis({ settings: {} })).url));
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
    for (const key of keys) expect(await hoursLeft(redis, key), key).toBe(4);
    await use('keep');
    for (const key of keys.filter((each) => !each.includes(':family:')))
      expect(await hoursLeft(redis, key), key).toBe('endless');
  });
});

const reads: Readonly<Record<string, readonly [name: string, ...args: (string | number)[]]>> = {
  string: ['GET'],
  hash: ['HGETALL'],
  list: ['LRANGE', 0, -1],
  zset: ['ZRANGE', 0, -1, 'WITHSCORES'],
};

async function dumpOf(redis: Redis): Promise<string> {
  const keys = (await redis.command('KEYS', '*')) as string[];
  const values = keys.map(async (key) => {
    const [name = '', ...args] = reads[String(await redis.command('TYPE', key))] ?? [];
    return redis.command(name, key, ...args);
  });
  return JSON.stringify([keys, await Promise.all(values)]);
}

/** Hours until Redis drops the key, rounded up. */
async function hoursLeft(redis: Redis, key: string): Promise<number | 'endless'> {
  const leftMs = Number(await redis.command('PTTL', key));
  return leftMs === -1 ? 'endless' : Math.ceil(leftMs / hourMs);
}

async function keyOf(redis: Redis, digest: TokenDigest): Promise<string> {
  const [key = ''] = (await redis.command('KEYS', `*${digest}`)) as string[];
  return key;
}
