import type { BenchCase } from '../case.ts';
import { type Contestant, startRedis, startShopward } from '../contestants.ts';
import { bearers, get, type Stage } from '../stage.ts';
import { noRedis, patchOfCarts, rows, tracked, untilTagged } from './entity-tags.ts';

/** Two equal programs differ by this much on a busy machine. */
const most = 1.05;

/** `--baseline`: this checkout and another one, alternating in one run. */
export function baselineCases(stage: Stage, baseline: string): BenchCase[] {
  let plain: Promise<Contestant[]> | undefined;
  const withoutTags = () => {
    plain ??= Promise.all([
      startShopward('before', stage.upstream, { checkout: baseline }),
      startShopward('now', stage.upstream),
    ]);
    return plain;
  };
  /** Each version has its own store: it may not know the records of the other, and would replace them in every call. */
  const ofCarts = async (stores: readonly string[]) => {
    const both: Contestant[] = [];
    for (const [i, store] of stores.entries()) {
      const more = `store: { url: '${store}' }\n${tracked}\n`;
      const checkout = i === 0 ? { checkout: baseline } : {};
      const name = i === 0 ? 'before' : 'now';
      const contestant = await startShopward(name, stage.upstream, { rows, more, ...checkout });
      await untilTagged(contestant);
      both.push(contestant);
    }
    return both;
  };
  const twoRedis = async () => {
    const [first, second] = [await startRedis(), await startRedis()];
    return first === undefined || second === undefined ? undefined : [first.url, second.url];
  };
  const targets = [{ row: 'now', against: 'before', of: 'cpu', most } as const];
  const tagged = async (stores: readonly string[] | undefined) => {
    if (stores === undefined) return { entries: [], leftOut: [noRedis] };
    const request = { ...get('/carts/1'), authorizations: await bearers(1) };
    return { entries: (await ofCarts(stores)).map((contestant) => ({ contestant, request })) };
  };
  const post = {
    ...get('/small', { 'Content-Type': 'application/json' }),
    method: 'POST',
    body: JSON.stringify({ filler: 'x'.repeat(2000) }),
  };
  const entriesOf = async (request: ReturnType<typeof get>) =>
    (await withoutTags()).map((contestant) => ({ contestant, request }));
  return [
    ...[1_000, 6_000, 12_000].map((perSecond) => ({
      name: `before and now: GET at ${perSecond.toLocaleString('en')} a second`,
      connections: 32,
      prepare: async () => ({ entries: await entriesOf({ ...get('/small'), perSecond }) }),
    })),
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
    { name: 'before and now: tracked GET, memory', targets, prepare: () => tagged(['memory', 'memory']) },
    {
      name: 'before and now: 304, memory',
      targets,
      async prepare() {
        const tagField = 'If-None-Match' as const;
        const request = { ...get('/carts/1'), authorizations: await bearers(1), status: 304, tagField };
        const both = await ofCarts(['memory', 'memory']);
        return { entries: both.map((contestant) => ({ contestant, request })) };
      },
    },
    {
      name: 'before and now: tracked GET, Redis',
      targets,
      prepare: async () => tagged(await twoRedis()),
    },
    {
      name: 'before and now: PATCH with If-Match, Redis',
      connections: 16,
      targets,
      async prepare() {
        const stores = await twoRedis();
        if (stores === undefined) return { entries: [], leftOut: [noRedis] };
        const request = { ...(await patchOfCarts()), tagField: 'If-Match' as const };
        const both = await ofCarts(stores);
        return { entries: both.map((contestant) => ({ contestant, request })) };
      },
    },
  ];
}
