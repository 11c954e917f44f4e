import type { BenchCase, Target } from '../case.ts';
import type { Contestant } from '../contestants.ts';
import type { LoadRequest } from '../load.ts';
import { bearers, get, type Stage } from '../stage.ts';

const tail = (['p50', 'p99', 'p999'] as const).map((of): Target => {
  return { row: 'shopward, access log on', against: 'nginx', of, most: of === 'p999' ? 2 : 1.5 };
});

/** Latency at a rate that all contestants can serve, and of a lone connection. */
export function latencyCases(stage: Stage): BenchCase[] {
  const upstream = { name: 'the upstream itself', url: stage.upstream, pids: [] };
  const entriesOf = (who: readonly (Contestant | undefined)[], request: LoadRequest) =>
    who.flatMap((contestant) => (contestant === undefined ? [] : [{ contestant, request }]));
  const proxies = async () => [
    await stage.shopward(),
    await stage.shopwardWithAccessLog(),
    await stage.fastify(),
    await stage.nginx(),
    await stage.haproxy(),
    upstream,
  ];
  const atRate = (perSecond: number): BenchCase => ({
    name: `latency at ${perSecond.toLocaleString('en')} requests a second`,
    connections: 32,
    targets: tail,
    prepare: async () => ({ entries: entriesOf(await proxies(), { ...get('/small'), perSecond }) }),
  });
  const atShare = (share: number): BenchCase => ({
    name: `latency at ${share * 100} % of what each can do`,
    connections: 32,
    async prepare() {
      const who = [await stage.shopward(), await stage.fastify(), await stage.nginx(), await stage.haproxy()];
      return { entries: entriesOf(who, get('/small')).map((entry) => ({ ...entry, share })) };
    },
  });
  return [
    atRate(1_000),
    atRate(6_000),
    atRate(12_000),
    atShare(0.1),
    atShare(0.3),
    atShare(0.6),
    {
      name: 'latency of protected requests at 6,000 a second',
      connections: 32,
      async prepare() {
        const request = { ...get('/orders/1'), authorizations: await bearers(1000), perSecond: 6_000 };
        const who = [await stage.shopward(), await stage.fastify(), await stage.haproxy()];
        return { entries: entriesOf(who, request) };
      },
    },
    {
      name: 'latency of a lone connection',
      connections: 1,
      targets: [{ row: 'shopward', against: 'nginx', of: 'later', most: 0.1 }],
      prepare: async () => ({ entries: entriesOf(await proxies(), { ...get('/small'), perSecond: 200 }) }),
    },
  ];
}
