import { Cluster } from 'ioredis';
import type { Client } from './clients.ts';
import type { ServerFacts } from './redis.ts';

const maxLagSeconds = 3;

/** Asks every primary by INFO, since CONFIG is often forbidden. */
export async function askServerFacts(client: Client): Promise<ServerFacts> {
  const nodes = client instanceof Cluster ? client.nodes('master') : [client];
  const askedMs = Date.now();
  const infos = await Promise.all(nodes.map((node) => node.info('default')));
  return readServerFacts(infos, askedMs);
}

/** Exported for its tests. */
export function readServerFacts(infos: readonly string[], askedMs: number): ServerFacts {
  const all = (name: string) => infos.map((info) => field(info, name) ?? '');
  const memories = infos.map((info) => ({
    usedBytes: Number(field(info, 'used_memory') ?? 0),
    maxBytes: Number(field(info, 'maxmemory') ?? 0),
  }));
  return {
    evictingPolicy: all('maxmemory_policy').find((policy) => policy !== '' && policy !== 'noeviction'),
    memory: memories.reduce((fullest, each) => (shareOf(each) > shareOf(fullest) ? each : fullest), {
      usedBytes: 0,
      maxBytes: 0,
    }),
    connectedReplicas: Math.min(...infos.map(countReplicas)),
    timeMs: Number(all('server_time_usec')[0]) / 1000 || undefined,
    askedMs,
    runIds: all('run_id').toSorted().join(' '),
    replicationIds: all('master_replid').toSorted().join(' '),
  };
}

/** In `slave0:ip=…,port=…,state=online,offset=…,lag=1` the lag is seconds since its last acknowledgement, sent each second. */
function countReplicas(info: string): number {
  return info.split('\n').filter((line) => {
    const lag = /^slave\d{1,4}:.{0,200},state=online,.{0,100}lag=(\d{1,9})/.exec(line)?.[1];
    return lag !== undefined && Number(lag) <= maxLagSeconds;
  }).length;
}

/** How full a node is, from 0 to 1; without `maxmemory` as a share of a terabyte, so that nodes can still be compared. */
function shareOf({ usedBytes, maxBytes }: ServerFacts['memory']): number {
  return usedBytes / (maxBytes || 2 ** 40);
}

function field(info: string, name: string): string | undefined {
  const begin = info.indexOf(`\n${name}:`);
  if (begin === -1) return undefined;
  const from = begin + name.length + 2;
  const end = info.indexOf('\n', from);
  return info.slice(from, end === -1 ? undefined : end).trimEnd();
}
