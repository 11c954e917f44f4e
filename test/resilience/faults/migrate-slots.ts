import { Redis } from 'ioredis';
import type { RedisProcess } from '../../harness/redis-server.ts';

interface Move {
  readonly slot: string;
  readonly source: Redis;
  readonly target: Redis;
  readonly targetPort: number;
  readonly targetId: string;
}

/**
 * Begins to move every slot with keys to the next node: half of the keys are moved, so that scripts on two keys fail at
 * both nodes. The returned function moves the rest and tells every node.
 */
export async function migrateSlots(nodes: readonly RedisProcess[]): Promise<() => Promise<void>> {
  const clients = nodes.map((node) => new Redis(node.port, '127.0.0.1'));
  const ids = await Promise.all(clients.map(async (client) => String(await client.call('CLUSTER', 'MYID'))));
  const moves: Move[] = [];
  for (const [i, source] of clients.entries()) {
    const next = (i + 1) % nodes.length;
    const [target, targetPort, targetId] = [clients[next], nodes[next]?.port, ids[next]];
    if (target === undefined || targetPort === undefined || targetId === undefined) continue;
    for (const slot of await slotsOf(source)) {
      const move = { slot, source, target, targetPort, targetId };
      await target.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', ids[i] ?? '');
      await source.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', targetId);
      moves.push(move);
    }
  }
  for (const move of moves) await carry(move, 1 / 2);
  return async () => {
    for (const move of moves) {
      await carry(move, 1);
      const { slot, source, target, targetId } = move;
      const others = clients.filter((client) => client !== source && client !== target);
      for (const client of [target, source, ...others]) {
        await client.call('CLUSTER', 'SETSLOT', slot, 'NODE', targetId);
      }
    }
    for (const client of clients) client.disconnect();
  };
}

async function slotsOf(source: Redis): Promise<Set<string>> {
  const keys = await source.keys('*');
  const slots = keys.map(async (key) => String(await source.call('CLUSTER', 'KEYSLOT', key)));
  return new Set(await Promise.all(slots));
}

async function carry({ slot, source, targetPort }: Move, share: number): Promise<void> {
  const keys = (await source.call('CLUSTER', 'GETKEYSINSLOT', slot, '1000')) as string[];
  for (const key of keys.slice(0, Math.ceil(keys.length * share))) {
    await source.call('MIGRATE', '127.0.0.1', String(targetPort), key, '0', '5000');
  }
}
