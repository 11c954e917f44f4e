import { setTimeout as sleep } from 'node:timers/promises';
import { startFaultProxy } from '../../test/harness/fault-proxy.ts';
import type { BenchCase } from '../case.ts';
import { type Contestant, startRedis, startShopward } from '../contestants.ts';
import type { LoadRequest } from '../load.ts';
import type { Entry } from '../measure.ts';
import { closeAtEnd } from '../programs.ts';
import { bearers, get, type Stage } from '../stage.ts';

export const rows = ['ANY /carts/{cart_id}'];
const untracked = 'entityTags: false';
export const tracked =
  "entityTags: { resources: [{ collection: /carts, member: '/carts/{cart_id}', methods: [PATCH, DELETE] }] }";
/** A new store gives no tags at first, because it may have lost leases. */
export async function untilTagged({ url }: Contestant): Promise<void> {
  const [Authorization = ''] = await bearers(1);
  for (let tries = 0; tries < 600; tries++) {
    const { headers } = await fetch(`${url}/carts/1`, { headers: { Authorization } });
    if (headers.has('etag')) return;
    await sleep(100);
  }
  throw new Error('bench: no answer has a tag');
}

export const noRedis = 'Redis: not available here';

/** A PATCH of a cart; the load generator adds the cart and the tag. */
export async function patchOfCarts() {
  return {
    ...get('/carts/', { 'Content-Type': 'application/json' }),
    method: 'PATCH',
    body: JSON.stringify({ data: { type: 'carts', attributes: { name: 'x' } } }),
    authorizations: await bearers(1),
  };
}

/** What tags cost: tracked requests beside untracked ones. */
export function entityTagCases(stage: Stage): BenchCase[] {
  const start = async (name: string, store: string, tags: string, upstream = stage.upstream) => {
    const contestant = await startShopward(name, upstream, {
      rows,
      more: `store: { ${store} }\n${tags}\n`,
    });
    if (tags !== untracked) await untilTagged(contestant);
    return contestant;
  };
  const withStores = async (
    tags: string,
  ): Promise<{ entries: Omit<Entry, 'request'>[]; leftOut: string[] }> => {
    const redis = await stage.redis();
    const memory = { contestant: await start('memory', 'url: memory', tags) };
    if (redis === undefined) return { entries: [memory], leftOut: [noRedis] };
    return {
      entries: [memory, { contestant: await start('Redis', `url: '${redis.url}'`, tags) }],
      leftOut: [],
    };
  };
  const trackedTargets = ['memory', 'Redis'].flatMap((row) => [
    { row, against: 'untracked', of: 'cpu' as const, most: 1.5 },
    { row, against: 'untracked', of: 'added' as const, most: 60 },
  ]);
  const trackedGet = async (request: LoadRequest) => {
    const without = { contestant: await start('untracked', 'url: memory', untracked) };
    const { entries, leftOut } = await withStores(tracked);
    return { entries: [without, ...entries].map((one) => ({ ...one, request })), leftOut };
  };
  return [
    {
      name: 'tracked GET',
      targets: trackedTargets,
      prepare: async () => trackedGet({ ...get('/carts/1'), authorizations: await bearers(1) }),
    },
    {
      name: 'tracked GET, 10,000 carts',
      targets: trackedTargets,
      async prepare() {
        const paths = Array.from({ length: 10_000 }, (_, i) => `/carts/${i + 1}`);
        return trackedGet({ ...get('/carts/1'), paths, authorizations: await bearers(1) });
      },
    },
    {
      name: 'PATCH with If-Match, each after the other',
      connections: 16,
      targets: [{ row: 'Redis', against: 'untracked', of: 'cpu', most: 1.8 }],
      async prepare() {
        const request = await patchOfCarts();
        const passing = { ...request, path: '/carts/1', hasThreadEach: true as const };
        const without = {
          contestant: await start('untracked', 'url: memory', untracked),
          request: passing,
        };
        const { entries, leftOut } = await withStores(tracked);
        const chained = { ...request, tagField: 'If-Match' as const };
        return { entries: [without, ...entries.map((one) => ({ ...one, request: chained }))], leftOut };
      },
    },
    {
      name: 'PATCH with If-Match, 32 writers, a shop that takes 20 ms, a replica that confirms 5 ms away',
      connections: 32,
      // `replicas: 1` has at least two thirds of the writes.
      targets: [{ row: 'replicas: 1', against: 'replicas: 0', of: 'time', most: 1.5 }],
      async prepare() {
        const primary = await startRedis();
        if (primary === undefined) return { entries: [], leftOut: [noRedis] };
        const way = closeAtEnd(await startFaultProxy(Number(new URL(primary.url).port)));
        await way.set({ toUpstream: { delayMs: 5 } });
        await startRedis(way.port);
        const shop = closeAtEnd(await startFaultProxy(Number(new URL(stage.upstream).port)));
        await shop.set({ toUpstream: { delayMs: 20 } });
        const request = { ...(await patchOfCarts()), tagField: 'If-Match' as const };
        const entries: Entry[] = [];
        for (const replicas of [0, 1]) {
          const name = `replicas: ${replicas}`;
          const store = `url: '${primary.url}', prefix: r${replicas}, replicas: ${replicas}`;
          entries.push({
            contestant: await start(name, store, tracked, `http://127.0.0.1:${shop.port}`),
            request,
          });
        }
        return { entries };
      },
    },
  ];
}
