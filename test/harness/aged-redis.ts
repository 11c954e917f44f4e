import { Redis } from 'ioredis';

const hourMicros = 3_600_000_000;

/**
 * Makes an empty Redis of one node look as if its data had been the same for an hour, so that the hold of the entity
 * tags (one lease from when a new data set is met) is over at once.
 */
export async function ageRedis(port: number, keyPrefix = 'shopward'): Promise<void> {
  const client = new Redis({ port, host: '127.0.0.1' });
  const id = /^master_replid:(\w+)/m.exec(await client.info('replication'))?.[1] ?? '';
  const [seconds = 0, micros = 0] = (await client.time()).map(Number);
  await client.set(`${keyPrefix}:{tags-0}:epoch`, `${id}/5:${seconds * 1_000_000 + micros - hourMicros}`);
  client.disconnect();
}
