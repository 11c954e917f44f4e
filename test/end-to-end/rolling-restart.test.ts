import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Balancer, startBalancer } from '../harness/balancer.ts';
import { answer, type RecordingUpstream, startRecordingUpstream } from '../harness/recording-upstream.ts';
import { type Shopward, startShopward } from '../harness/shopward.ts';
import { startSteadyLoad } from '../harness/steady-load.ts';

const rounds = 2;

let upstream: RecordingUpstream;
let balancer: Balancer;

beforeAll(async () => {
  // Slow enough that requests are always in flight when a replica is told to end.
  upstream = await startRecordingUpstream(async () => {
    await sleep(5);
    return answer();
  });
  balancer = await startBalancer();
});
afterAll(async () => {
  await balancer?.close();
  await upstream?.close();
});

const startReplica = () =>
  startShopward({
    upstream: `http://127.0.0.1:${upstream.port}`,
    // Much longer than the balancer takes to look.
    config: { listen: { drainDelay: '5s' } },
    rows: ['GET /secret'],
  });

it('a rolling restart of two replicas under load loses no request', async () => {
  let replicas: Shopward[] = [await startReplica(), await startReplica()];
  for (const replica of replicas) await balancer.add(replica);
  const load = startSteadyLoad(balancer.port, 16, (n) =>
    n % 4 === 0 ? { method: 'POST', path: '/orders', body: `{"n":${n}}` } : { method: 'GET', path: '/open' },
  );
  await load.more(200);
  for (let round = 0; round < rounds; round++) {
    for (const old of replicas) {
      const fresh = await startReplica();
      await balancer.add(fresh);
      await load.more(100);
      old.signal('SIGTERM');
      expect(await old.exited).toBe(0);
      balancer.remove(old);
      replicas = [...replicas.filter((one) => one !== old), fresh];
      await load.more(100);
    }
  }
  await load.stop();
  for (const replica of replicas) await replica.stop();
  expect(balancer.failures).toEqual([]);
  expect([...load.statuses]).toEqual([[200, load.total]]);
  process.stdout.write(`rolling restart: ${load.total} requests, ${2 * rounds} restarts, 0 failures\n`);
}, 240_000);
