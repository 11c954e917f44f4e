import { Redis } from 'ioredis';
import { afterAll, expect, it } from 'vitest';
import { ageRedis } from '../../harness/aged-redis.ts';
import { request, useAttackStage } from '../../harness/attack-stage.ts';
import { createKeptClient } from '../../harness/kept-client.ts';
import { exchangeRaw } from '../../harness/raw-client.ts';
import { answer } from '../../harness/recording-upstream.ts';
import { startRedisProcess } from '../../harness/redis-server.ts';

/** X12: a shop that answers 200 for every id, and a client that invents ids. */
const redis = await startRedisProcess();
afterAll(() => redis.close());
await ageRedis(redis.port);
let state = 'a';
const stage = useAttackStage({
  script: ({ head }) => answer(head.startsWith('HEAD ') ? '' : JSON.stringify({ state })),
  rows: ['GET /carts'],
  config: {
    trustedProxies: ['127.0.0.0/8'],
    store: { url: `redis://127.0.0.1:${redis.port}` },
    entityTags: { resources: [{ collection: '/guest-carts', member: '/guest-carts/{id}' }] },
  },
});

const ids = 3_000;
const connections = 20;

function get(address: string, id: string | number, method = 'GET'): string {
  return request(`${method} /guest-carts/${id}`, [`X-Forwarded-For: ${address}`, 'Content-Length: 0']);
}

async function records(): Promise<number> {
  const client = new Redis({ port: redis.port, host: '127.0.0.1' });
  const keys = await client.keys('*{tags-*}:*');
  client.disconnect();
  return keys.filter((key) => !key.endsWith(':epoch')).length;
}

it('X12: invented ids from one address leave a bounded number of records, and others get tags', async () => {
  const clients = Array.from({ length: connections }, () => createKeptClient(stage.port));
  await Promise.all(
    clients.map(async (client, first) => {
      // All in one network: a client can choose the last bits of its IPv6 address.
      for (let id = first; id < ids; id += connections)
        expect((await client.exchange(get(`2001:db8::${(id % 9_999) + 1}`, id))).status).toBe(200);
    }),
  );
  expect(await records()).toBe(1_000);
  const [client] = clients;
  const tagOf = async (address: string, id: string | number) =>
    (await client?.exchange(get(address, id)))?.field('etag');
  const known = await tagOf('192.0.2.1', 'mine');
  expect(known).toMatch(/^"[0-9a-f]{32}\.[0-9a-f]{24}"$/);
  // The address that may add no records still gets the tag of a recorded state, but no tag for a new state.
  expect(await tagOf('2001:db8::1', 'mine')).toBe(known);
  state = 'b';
  expect(await tagOf('2001:db8::1', 'mine')).toBeUndefined();
  expect(await tagOf('2001:db8::1', 'another')).toBeUndefined();
  const changed = await tagOf('192.0.2.1', 'mine');
  expect(changed).not.toBe(known);
  expect(await tagOf('2001:db8::1', 'mine')).toBe(changed);
  expect(await records()).toBe(1_001);
  for (const each of clients) each.close();
  const { body } = await exchangeRaw(stage.shopward.adminPort, request('GET /metrics', [], '', 'localhost'));
  expect(/event="untracked-anonymous"\} (\d+)/.exec(body.toString())?.[1]).toBe(`${ids - 1_000 + 2}`);
}, 120_000);

it('X12: writes to 50 invented ids leave 50 keys, which expire within four minutes', async () => {
  const before = await records();
  const client = createKeptClient(stage.port);
  for (let id = 0; id < 50; id += 1) {
    const post = request(`POST /guest-carts/written-${id}/items`, [
      'Content-Type: application/json',
      `X-Anonymous-Customer-Unique-Id: ${id}`,
      'Content-Length: 0',
    ]);
    expect((await client.exchange(post)).status).toBe(200);
  }
  client.close();
  const store = new Redis({ port: redis.port, host: '127.0.0.1' });
  const keys = await store.keys('*{tags-*}:*');
  const left = await Promise.all(keys.map((key) => store.pttl(key)));
  store.disconnect();
  expect(await records()).toBe(before + 50);
  // Four times the default response timeout.
  expect(left.filter((ms) => ms > 0 && ms <= 240_000)).toHaveLength(50);
});
