import { readFileSync } from 'node:fs';
import type { BenchCase } from '../case.ts';
import { type Contestant, startShopward } from '../contestants.ts';
import { get, type Stage } from '../stage.ts';
import { noRedis } from './entity-tags.ts';

/**
 * What a request costs when 1, 2 or 4 workers share the connections, all on the one processor that proxies have here: with a
 * processor for each, as many times more requests fit as that cost allows. Their primary counts with them.
 */
export function workerCases(stage: Stage): BenchCase[] {
  const start = async (count: number, store: string): Promise<Contestant> => {
    const name = `workers: ${count}`;
    const more = `workers: ${count}\nstore: { url: '${store}', prefix: 'workers-${count}' }\nentityTags: false\n`;
    const contestant = await startShopward(name, stage.upstream, { more });
    const [pid = 0] = contestant.pids;
    return { ...contestant, pids: [pid, ...childrenOf(pid)] };
  };
  return [
    {
      name: 'workers on one processor, pass-through GET 0.4 KB',
      // So that each of four has as many as one has elsewhere.
      connections: 256,
      async prepare() {
        const redis = await stage.redis();
        if (redis === undefined) return { entries: [], leftOut: [noRedis] };
        const contestants: Contestant[] = [];
        for (const count of [1, 2, 4]) contestants.push(await start(count, redis.url));
        return { entries: contestants.map((contestant) => ({ contestant, request: get('/small') })) };
      },
    },
  ];
}

function childrenOf(pid: number): number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
  return text === '' ? [] : text.split(' ').map(Number);
}
