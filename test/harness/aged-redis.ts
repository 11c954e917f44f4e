import { Redis } from 'ioredis';

const hourMicros = 3_600_000_000;

/**
 * Makes an empty Redis look as if its data had been the same for an hour. Entity tags otherwise wait for one lease
 * after they first see a new data set. A Cluster has 64 buckets: each node is aged, and refuses the buckets of other
 * nodes.
 */
export async function ageRedis(port: number, keyPrefix = 'shopward', buckets = 1): Promise<void> {
  const client = new Redis({ port, host: '127.0.0.1' });
  const id = /^master_replid:(\w+)/m.exec(await client.info('replication'))?.[1] ?? '';
  const [seconds = 0, micros = 0] = (await client.time()).map(Number);
  const epoch = `${id}/6:${seconds * 1_000_000 + micros - hourMicros}`;
  const set = (bucket: number) => client.set(`${keyPrefix}:{tags-${bucket}}:epoch`, epoch);
  await Promise.all(
    Array.from({ length: buckets }, (_, bucket) =>
      set(bucket).catch((fault: Error) => {
        if (!fault.message.startsWith('MOVED')) throw fault;
      }),
    ),
  );
  client.disconnect();
}
