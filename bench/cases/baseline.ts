import type { BenchCase } from '../case.ts';
import { type Contestant, type ShopwardSettings, startShopward } from '../contestants.ts';
import { bearers, get, type Stage } from '../stage.ts';
import { noRedis, patchOfCarts, rows, tracked, untilTagged } from './entity-tags.ts';

/** No worse than before, beyond what a busy machine makes of two equal programs. */
const most = 1.05;

/** `--baseline`: this checkout beside another one, in turn, in one run. */
export function baselineCases(stage: Stage, baseline: string): BenchCase[] {
  const pair = async (settings: ShopwardSettings, isReady?: (one: Contestant) => Promise<void>) => {
    const both = [
      await startShopward('before', stage.upstream, { ...settings, checkout: baseline }),
      await startShopward('now', stage.upstream, settings),
    ];
    for (const contestant of both) await isReady?.(contestant);
    return both;
  };
  let plain: Promise<Contestant[]> | undefined;
  const withoutTags = () => {
    plain ??= pair({});
    return plain;
  };
  const ofCarts = async (store: string, tags: string, isReady = untilTagged) =>
    pair({ rows, more: `store: { url: '${store}' }\n${tags}\n` }, isReady);
  const targets = [{ row: 'now', against: 'before', of: 'cpu', most } as const];
  const tagged = async (store: string | undefined) => {
    if (store === undefined) return { entries: [], leftOut: [noRedis] };
    const request = { ...get('/carts/1'), authorizations: await bearers(1) };
    return {
      entries: (await ofCarts(store, tracked('0s'))).map((contestant) => ({ contestant, request })),
    };
  };
  const post = {
    ...get('/small', { 'Content-Type': 'application/json' }),
    method: 'POST',
    body: JSON.stringify({ filler: 'x'.repeat(2000) }),
  };
  const entriesOf = async (request: ReturnType<typeof get>) =>
    (await withoutTags()).map((contestant) => ({ contestant, request }));
  return [
    {
      name: 'before and now: pass-through GET 0.4 KB',
      targets,
      prepare: async () => ({ entries: await entriesOf(get('/small')) }),
    },
    {
      name: 'before and now: pass-through GET 100 KB',
      targets,
      prepare: async () => ({ entries: await entriesOf(get('/large')) }),
    },
    {
      name: 'before and now: pass-through POST 2 KB',
      targets,
      prepare: async () => ({ entries: await entriesOf(post) }),
    },
    {
      name: 'before and now: protected GET, 1 token',
      targets,
      prepare: async () => {
        const request = { ...get('/orders/1'), authorizations: await bearers(1) };
        return { entries: await entriesOf(request) };
      },
    },
    { name: 'before and now: tracked GET, memory', targets, prepare: () => tagged('memory') },
    {
      name: 'before and now: tracked GET, Redis',
      targets,
      prepare: async () => tagged((await stage.redis())?.url),
    },
    {
      name: 'before and now: PATCH with If-Match, Redis',
      connections: 16,
      targets,
      async prepare() {
        const redis = await stage.redis();
        if (redis === undefined) return { entries: [], leftOut: [noRedis] };
        const request = { ...(await patchOfCarts()), tagField: 'If-Match' as const };
        const both = await ofCarts(redis.url, tracked('0s'));
        return { entries: both.map((contestant) => ({ contestant, request })) };
      },
    },
  ];
}
