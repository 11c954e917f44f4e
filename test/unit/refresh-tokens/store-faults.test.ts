import { describe, expect, type TestContext, test } from 'vitest';
import type { Redis } from '../../../src/redis/redis.ts';
import { RedisTokenStore } from '../../../src/refresh-tokens/redis-store.ts';
import { closingAtEnd } from '../../harness/closing-at-end.ts';
import { startRedisProcess } from '../../harness/redis-server.ts';
import { newSubject, newToken } from './store-contract.ts';
import { connect } from './stores.ts';
import { asked, defaultLifetimeMs, startDemoShop, startTokenFront, tokenClient } from './token-front.ts';

/** Redis is paused, loses a replica, or is unavailable to one replica of shopward. */
async function stage(context: Pick<TestContext, 'onTestFinished'>) {
  const open = closingAtEnd(context);
  const shop = open(await startDemoShop());
  const refreshes = () => asked(shop, 'POST', '/refresh-tokens');
  async function startReplica(url: string, timeoutMs: number, replicas = 0) {
    const redis: Redis = open(await connect(url, timeoutMs));
    const store = new RedisTokenStore({
      redis,
      replicas,
      lifetimeMs: defaultLifetimeMs,
      retentionMs: 'keep',
    });
    const front = open(await startTokenFront(shop, store, {}));
    return { redis, store, front, ...tokenClient(front.port) };
  }
  return { open, startReplica, refreshes };
}

describe.concurrent('a paused Redis', () => {
  test('a refresh that got 503 leaves no claim: 201 after Redis resumes', async (context) => {
    const { open, startReplica, refreshes } = await stage(context);
    const server = open(await startRedisProcess());
    const { signIn, refresh } = await startReplica(`redis://127.0.0.1:${server.port}`, 1000);
    const { refreshToken } = await signIn();
    server.pause();
    const statuses: number[] = [];
    for (let i = 0; i < 4; i += 1) {
      const { status, json, headers } = await refresh(refreshToken);
      expect([json.errors[0].code, headers.get('retry-after')]).toEqual(['token-store-unavailable', '1']);
      statuses.push(status);
    }
    expect(statuses).toEqual([503, 503, 503, 503]);
    expect(refreshes()).toBe(0);
    server.resume();
    const said = new Set<string>();
    await context.expect
      .poll(async () => {
        const { status, json } = await refresh(refreshToken);
        said.add(status === 503 ? json.errors[0].code : String(status));
        return status;
      })
      .toBe(201);
    // A late claim would show as refresh-token-busy, a late mark as 401.
    expect([...said].filter((word) => word !== '201' && word !== 'token-store-unavailable')).toEqual([]);
  });
});

describe.concurrent('unknown tokens', () => {
  test('a note about one is kept for a day', async (context) => {
    const open = closingAtEnd(context);
    const server = open(await startRedisProcess());
    const redis = open(await connect(`redis://127.0.0.1:${server.port}`));
    const store = new RedisTokenStore({ redis, lifetimeMs: defaultLifetimeMs, retentionMs: 'keep' });
    expect(await store.noteRevocation(newToken(), newSubject(), 'r')).toBe('noted');
    const [key = '', ...others] = (await redis.command('KEYS', '*')) as string[];
    expect(others).toEqual([]);
    const leftMs = Number(await redis.command('PTTL', key));
    expect(leftMs).toBeLessThanOrEqual(86_400_000);
    expect(leftMs).toBeGreaterThan(86_000_000);
  });

  test('a refresh of one that the shop refuses leaves no key', async (context) => {
    const { open, startReplica } = await stage(context);
    const server = open(await startRedisProcess());
    const { redis, refresh } = await startReplica(`redis://127.0.0.1:${server.port}`, 5000);
    for (let i = 0; i < 20; i += 1) expect((await refresh(`def50200${i}`)).status).toBe(401);
    expect(await redis.command('KEYS', '*')).toEqual([]);
  });
});
