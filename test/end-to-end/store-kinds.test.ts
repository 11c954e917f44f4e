import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { cartIds } from '../../demo/data/ids.ts';
import { type DemoShop, startDemoShop } from '../../demo/shop.ts';
import { ageRedis } from '../harness/aged-redis.ts';
import { eventually } from '../harness/eventually.ts';
import { type RedisSentinel, startCluster, startRedis, startSentinel } from '../harness/redis-processes.ts';
import { callShop, jsonOf, outcomeOf, type ShopCall } from '../harness/shop-client.ts';
import { type RunningShopward, startShopward } from '../harness/shopward.ts';
import { startShopwardHere } from '../harness/shopward-here.ts';
import { testCertificate, testKey } from '../harness/tls-fixture.ts';

const cart = `/carts/${cartIds.everyday}`;
const body = { data: { type: 'carts', attributes: { name: 'Patched' } } };

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'shopward-store-'));
  await writeFile(path.join(folder, 'cert.pem'), testCertificate);
  await writeFile(path.join(folder, 'key.pem'), testKey);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** The shop of one test. `open` registers what is closed after the test, in reverse order. */
interface Stage {
  readonly shop: DemoShop;
  open<T extends { close(): Promise<void> }>(each: T): T;
}

/** Each case has its own stage, because cases run concurrently: most of their time is waiting for a lease. */
function staged(play: (stage: Stage) => Promise<void>): () => Promise<void> {
  return async () => {
    const closing: { close(): Promise<void> }[] = [];
    const open: Stage['open'] = (each) => {
      closing.push(each);
      return each;
    };
    try {
      await play({ shop: open(await startDemoShop()), open });
    } finally {
      for (const each of closing.reverse()) await each.close();
    }
  };
}

async function serve({ shop, open }: Stage, store: object): Promise<RunningShopward> {
  const shopward = await startShopwardHere({
    upstream: shop.url,
    config: {
      auth: { keys: { jwks: shop.jwksUrl }, subject: 'sub.customer_reference' },
      store: { timeout: '2s', ...store },
      entityTags: { lease: '6s', sendBy: '2s', wait: '6s' },
    },
  });
  open({ close: () => shopward.stop() });
  return shopward;
}

/** Checks every use of the store once: a tag, a change, a stale tag, an exchange, a used token. */
async function use({ shop }: Stage, { port }: RunningShopward): Promise<void> {
  const token = await shop.issueToken();
  const call = (line: string, options: ShopCall = {}) => callShop(port, line, { token, ...options });
  // After a failover writes may be refused until all connections lead to the new primary.
  const tag = await eventually('a change', async () => {
    const ifMatch = await eventually('a tag', async () => (await call(`GET ${cart}`)).field('etag'));
    const outcome = outcomeOf(await call(`PATCH ${cart}`, { ifMatch, body }));
    if (outcome !== '503 tag-store-unavailable') expect(outcome).toBe('200');
    return outcome === '200' ? ifMatch : undefined;
  });
  expect(outcomeOf(await call(`PATCH ${cart}`, { ifMatch: tag, body }))).toBe('412 006');
  const attributes = { username: 'sonia@shop.example', password: 'change123' };
  const pair = await call('POST /access-tokens', { body: { data: { type: 'access-tokens', attributes } } });
  const { refreshToken } = jsonOf(pair).data.attributes;
  const exchange = () =>
    call('POST /refresh-tokens', {
      body: { data: { type: 'refresh-tokens', attributes: { refreshToken } } },
    });
  expect([await exchange(), await exchange()].map(outcomeOf)).toEqual(['201', '401 004']);
}

describe.concurrent('kinds of stores', () => {
  it(
    'Sentinel, before and after a failover, with a replica that must confirm each claim',
    staged(async (stage) => {
      const group: RedisSentinel = stage.open(await startSentinel({ replicas: 2 }));
      // Avoids the wait of the first cold start.
      await ageRedis((await group.primary()).port);
      const shopward = await serve(stage, { url: group.url, replicas: 1 });
      await use(stage, shopward);
      await group.failover();
      await use(stage, shopward);
    }),
  );

  it(
    'a Cluster of three nodes',
    staged(async (stage) => {
      const { url } = stage.open(await startCluster());
      await use(stage, await serve(stage, { url }));
    }),
  );

  it(
    'TLS with a password; the password is not in output and metrics',
    staged(async (stage) => {
      const [cert, key] = [path.join(folder, 'cert.pem'), path.join(folder, 'key.pem')];
      const settings = {
        'tls-cert-file': cert,
        'tls-key-file': key,
        'tls-ca-cert-file': cert,
        'tls-auth-clients': 'no',
        requirepass: 'open-sesame',
      };
      const server = stage.open(await startRedis({ tls: true, settings }));
      const url = server.url.replace('//127.0.0.1', '//:open-sesame@localhost');
      const shopward = await serve(stage, { url, tls: { ca: cert } });
      await use(stage, shopward);
      const metrics = await (await fetch(`${shopward.adminUrl}/metrics`)).text();
      expect(shopward.output() + metrics).not.toContain('sesame');
    }),
  );

  it(
    'serve exits if Redis may evict keys',
    staged(async ({ shop, open }) => {
      const server = open(
        await startRedis({ settings: { maxmemory: '100mb', 'maxmemory-policy': 'allkeys-lru' } }),
      );
      const shopward = await startShopward({
        upstream: shop.url,
        config: { store: { url: server.url } },
        awaitListening: false,
      });
      expect(await shopward.exited).not.toBe(0);
      expect(shopward.output()).toMatch(/noeviction/);
      expect(shopward.output()).not.toMatch(/ {4}at /);
    }),
  );
});
