import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startBalancer } from '../harness/balancer.ts';
import { begun } from '../harness/begun.ts';
import { closingAtEnd } from '../harness/closing-at-end.ts';
import { eventually } from '../harness/eventually.ts';
import { untilRefused } from '../harness/free-port.ts';
import { exchangeRaw } from '../harness/raw-client.ts';
import { answer, type RecordingUpstream, startRecordingUpstream } from '../harness/recording-upstream.ts';
import { type RedisProcess, startRedisProcess } from '../harness/redis-server.ts';
import { type Shopward, startShopward } from '../harness/shopward.ts';
import { startSteadyLoad } from '../harness/steady-load.ts';

let upstream: RecordingUpstream;
let redis: RedisProcess;

beforeAll(async () => {
  // Slow, so that at any time most of the eight clients wait for an answer, also when a replica gets SIGTERM. The times
  // differ, so that the clients do not ask in step.
  let asked = 0;
  upstream = await startRecordingUpstream(async ({ head }) => {
    await (late.get(head.split(' ')[1] ?? '') ?? sleep(200 + ((61 * asked++) % 200)));
    return answer();
  });
  redis = await startRedisProcess();
});
afterAll(async () => {
  await redis?.close();
  await upstream?.close();
});

/** By path: the promise that the shop awaits before it answers. */
const late = new Map<string, Promise<void>>();

/** Ends a replica during a request, which it still answers after its port is closed. */
async function end(replica: Shopward): Promise<void> {
  const path = `/late/${replica.port}`;
  const { promise, resolve: release } = Promise.withResolvers<void>();
  late.set(path, promise);
  const line = `POST ${path} HTTP/1.1`;
  const answered = begun(
    exchangeRaw(replica.port, `${line}\r\nHost: shop.example\r\nContent-Length: 0\r\n\r\n`),
  );
  await eventually('the request at the shop', () => upstream.requestLines.includes(line) || undefined);
  replica.signal('SIGTERM');
  await untilRefused(replica.port);
  release();
  expect((await answered).status).toBe(200);
  expect(await replica.exited).toBe(0);
}

const startReplica = (workers: number) =>
  startShopward({
    upstream: `http://127.0.0.1:${upstream.port}`,
    // Ten times the interval at which the balancer checks readiness.
    config: { listen: { drainDelay: '2500ms' }, workers, store: { url: `redis://127.0.0.1:${redis.port}` } },
    rows: ['GET /secret'],
  });

// Concurrent: most of the time is the wait before a drain.
it.concurrent.for([
  ['one process', 1, 2],
  ['two workers', 2, 1],
] as const)(
  'replicas of %s are replaced under load, and no request is lost',
  { timeout: 240_000 },
  async ([name, workers, restarts], context) => {
    const open = closingAtEnd(context);
    const balancer = open(await startBalancer());
    const startOne = async () => {
      const replica = await startReplica(workers);
      open({ close: () => replica.kill() });
      return replica;
    };
    let replicas: Shopward[] = await Promise.all([startOne(), startOne()]);
    for (const replica of replicas) await balancer.add(replica);
    const load = startSteadyLoad(balancer.port, 8, (n) =>
      n % 4 === 0
        ? { method: 'POST', path: '/orders', body: `{"n":${n}}` }
        : { method: 'GET', path: '/open' },
    );
    open({ close: () => load.stop() });
    await load.more(40);
    for (const old of replicas.slice(0, restarts)) {
      const fresh = await startOne();
      await balancer.add(fresh);
      await load.more(24);
      await end(old);
      balancer.remove(old);
      replicas = [...replicas.filter((one) => one !== old), fresh];
      await load.more(24);
    }
    await load.stop();
    await Promise.all(replicas.map((replica) => replica.stop()));
    expect(balancer.failures).toEqual([]);
    expect([...load.statuses]).toEqual([[200, load.total]]);
    process.stdout.write(
      `rolling restart, ${name} each: ${load.total} requests, ${restarts} restarts, 0 failures\n`,
    );
  },
);
