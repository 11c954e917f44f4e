import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import type { BenchCase } from '../case.ts';
import { type Contestant, startShopward } from '../contestants.ts';
import { get, type Stage } from '../stage.ts';
import { noRedis } from './entity-tags.ts';

/**
 * The CPU time of a request when 1, 2 or 4 workers and their primary share the connections, all on the one processor for
 * proxies. If it stays the same, twice the workers on twice the processors serve twice the requests.
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
      // Each of four workers then has as many connections as a proxy in other cases.
      connections: 256,
      // Two workers on two processors are then 1.8 times as fast as one.
      targets: [{ row: 'workers: 2', against: 'workers: 1', of: 'cpu', most: 1.11 }],
      async prepare() {
        const redis = await stage.redis();
        if (redis === undefined) return { entries: [], leftOut: [noRedis] };
        const contestants: Contestant[] = [];
        for (const count of [1, 2, 4]) contestants.push(await start(count, redis.url));
        return { entries: contestants.map((contestant) => ({ contestant, request: get('/small') })) };
      },
    },
    {
      name: 'latency at 2,000 requests a second over 100 of 10,000 connections',
      connections: 100,
      targets: [{ row: '9,900 idle connections', against: 'no idle connections', of: 'p99', most: 1.1 }],
      async prepare() {
        const request = { ...get('/small'), perSecond: 2_000 };
        const settings = { more: 'limits: { clientShare: 100 }\n' };
        const alone = await startShopward('no idle connections', stage.upstream, settings);
        const crowded = await startShopward('9,900 idle connections', stage.upstream, settings);
        await openIdle(crowded, 9_900);
        return { entries: [alone, crowded].map((contestant) => ({ contestant, request })) };
      },
    },
  ];
}

/** Opens connections that have had one answer and send no further request. */
async function openIdle({ url }: Contestant, count: number): Promise<void> {
  const { hostname, port } = new URL(url);
  for (let i = 0; i < count; i++) {
    const socket = connect({ host: hostname, port: Number(port) });
    socket.write('GET /small HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await once(socket, 'data');
    socket.unref();
  }
}

function childrenOf(pid: number): number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
  return text === '' ? [] : text.split(' ').map(Number);
}
