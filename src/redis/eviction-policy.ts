import { Cluster } from 'ioredis';
import type { Client } from './clients.ts';

/**
 * The first `maxmemory_policy` among the nodes that throws records away, else undefined. Read from INFO, since CONFIG
 * is often forbidden. A lease that vanishes under memory pressure means two writers.
 */
export async function findEvictingPolicy(client: Client): Promise<string | undefined> {
  const nodes = client instanceof Cluster ? client.nodes('master') : [client];
  const infos = await Promise.all(nodes.map((node) => node.info('memory')));
  return infos.map(readPolicy).find((policy) => policy !== undefined && policy !== 'noeviction');
}

function readPolicy(info: string): string | undefined {
  return /^maxmemory_policy:(.*?)\r?$/m.exec(info)?.[1];
}
