import type { BenchCase } from '../case.ts';
import { startShopward } from '../contestants.ts';
import type { Entry } from '../measure.ts';
import { bearers, get, type Stage } from '../stage.ts';

const rows = ['ANY /carts/{cart_id}'];
const tracked = (freshFor: string) =>
  `entityTags: { resources: [{ collection: /carts, member: '/carts/{cart_id}', methods: [PATCH, DELETE], freshFor: ${freshFor} }] }`;
const noRedis = 'Redis: not to be had here';

/** What tags cost beside the same request without. */
export function entityTagCases(stage: Stage): BenchCase[] {
  const start = (name: string, store: string, tags: string) =>
    startShopward(name, stage.upstream, { rows, more: `store: { url: '${store}' }\n${tags}\n` });
  const withStores = async (
    tags: string,
  ): Promise<{ entries: Omit<Entry, 'request'>[]; leftOut: string[] }> => {
    const redis = await stage.redis();
    const memory = { contestant: await start('memory', 'memory', tags) };
    if (redis === undefined) return { entries: [memory], leftOut: [noRedis] };
    return { entries: [memory, { contestant: await start('Redis', redis.url, tags) }], leftOut: [] };
  };
  return [
    {
      name: 'tracked GET',
      targets: ['memory', 'Redis'].flatMap((row) => [
        { row, against: 'untracked', of: 'cpu' as const, most: 1.7 },
        { row, against: 'untracked', of: 'added' as const, most: 60 },
      ]),
      async prepare() {
        const request = { ...get('/carts/1'), authorizations: await bearers(1) };
        const untracked = { contestant: await start('untracked', 'memory', 'entityTags: false') };
        const { entries, leftOut } = await withStores(tracked('0s'));
        return { entries: [untracked, ...entries].map((one) => ({ ...one, request })), leftOut };
      },
    },
    {
      name: '304 from the store, without the shop',
      targets: ['memory', 'Redis'].map((row) => ({ row, against: 'pass-through', of: 'cpu', most: 0.8 })),
      async prepare() {
        const authorizations = await bearers(1);
        const passThrough = {
          contestant: await stage.shopward(),
          name: 'pass-through',
          request: get('/small'),
        };
        const request = {
          ...get('/carts/1'),
          authorizations,
          status: 304,
          tagField: 'If-None-Match' as const,
        };
        const { entries, leftOut } = await withStores(tracked('1h'));
        return { entries: [passThrough, ...entries.map((one) => ({ ...one, request }))], leftOut };
      },
    },
    {
      name: 'PATCH with If-Match, each after the other',
      connections: 16,
      async prepare() {
        const request = {
          ...get('/carts/', { 'Content-Type': 'application/json' }),
          method: 'PATCH',
          body: JSON.stringify({ data: { type: 'carts', attributes: { name: 'x' } } }),
          authorizations: await bearers(1),
        };
        const passing = { ...request, path: '/carts/1' };
        const untracked = {
          contestant: await start('untracked', 'memory', 'entityTags: false'),
          request: passing,
        };
        const { entries, leftOut } = await withStores(tracked('0s'));
        const chained = { ...request, tagField: 'If-Match' as const };
        return { entries: [untracked, ...entries.map((one) => ({ ...one, request: chained }))], leftOut };
      },
    },
  ];
}
