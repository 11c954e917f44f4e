import { Redis } from 'ioredis';
import type { RedisProcess } from '../harness/redis-server.ts';

/**
 * Begins to move every slot with entity tags from the first node to the second: half of each slot's keys are over, so that
 * scripts on both keys find them nowhere. The returned function moves the rest and tells every node.
 */
export async function migrateTags(nodes: readonly RedisProcess[]): Promise<() => Promise<void>> {
  const clients = nodes.map((node) => new Redis(node.port, '127.0.0.1'));
  const [source, target] = clients;
  const port = nodes[1]?.port;
  if (source === undefined || target === undefined || port === undefined) throw new Error('two nodes needed');
  const ids = (await Promise.all(clients.map((client) => client.call('CLUSTER', 'MYID')))).map(String);
  const [from = '', to = ''] = ids;
  const keys = await source.keys('*{tags-*');
  const slots = new Map<number, string[]>();
  for (const key of keys) {
    const slot = Number(await source.call('CLUSTER', 'KEYSLOT', key));
    slots.set(slot, [...(slots.get(slot) ?? []), key]);
  }
  const move = async (key: string) =>
    void (await source.call('MIGRATE', '127.0.0.1', String(port), key, '0', '5000'));
  for (const [slot, all] of slots) {
    await target.call('CLUSTER', 'SETSLOT', String(slot), 'IMPORTING', from);
    await source.call('CLUSTER', 'SETSLOT', String(slot), 'MIGRATING', to);
    for (const key of all.slice(0, Math.ceil(all.length / 2))) await move(key);
  }
  return async () => {
    for (const slot of slots.keys()) {
      for (;;) {
        const left = (await source.call('CLUSTER', 'GETKEYSINSLOT', String(slot), '100')) as string[];
        if (left.length === 0) break;
        for (const key of left) await move(key);
      }
      for (const client of [target, source, ...clients.slice(2)]) {
        await client.call('CLUSTER', 'SETSLOT', String(slot), 'NODE', to);
      }
    }
    for (const client of clients) client.disconnect();
  };
}
