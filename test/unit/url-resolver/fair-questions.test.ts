import { afterEach, beforeEach, expect, it } from 'vitest';
import { FairSemaphore } from '../../../src/lib/fair-semaphore.ts';
import type { UrlResolver } from '../../../src/url-resolver/filter.ts';
import { until } from '../../harness/redis-processes.ts';
import { createResolver, resolve, targetOf } from './resolver-request.ts';
import { type Shop, sendMapping, startShop } from './shop.ts';

let shop: Shop;
let resolver: UrlResolver;
let waiting: (() => void)[];
let mostAtOnce: number;

/** A shop that answers one request for each call of `answerOne`. */
beforeEach(async () => {
  waiting = [];
  mostAtOnce = 0;
  shop = await startShop((_, response) => {
    waiting.push(() => sendMapping(response, 'merchants', 'M1'));
    mostAtOnce = Math.max(mostAtOnce, waiting.length);
  });
});
afterEach(async () => {
  await resolver.close();
  await shop.close();
});

function create(atOnce: number, timeoutMs = 60_000): UrlResolver {
  const fair = new FairSemaphore({ permits: atOnce, capacity: 1000 });
  return createResolver({ upstream: { ask: shop.ask, permits: fair, timeoutMs } });
}

const ask = (url: string, clientAddress = 'a') => resolve(resolver, targetOf(url), { clientAddress });

async function answerOne(): Promise<void> {
  await until(async () => waiting.length > 0);
  waiting.shift()?.();
}

it('200 unknown URLs of one client at once: all are answered, four at a time', async () => {
  resolver = create(8);
  const answers = Promise.all(Array.from({ length: 200 }, (_, i) => ask(`/${i}`)));
  for (let i = 0; i < 200; i += 1) await answerOne();
  expect(new Set((await answers).map(({ status }) => status))).toEqual(new Set([200]));
  // One client has half of the permits.
  expect(mostAtOnce).toBe(4);
});

it('20 requests of one client for a URL that waits for a permit: one look-up', async () => {
  resolver = create(2);
  const first = ask('/first');
  const others = Promise.all(Array.from({ length: 20 }, () => ask('/second')));
  await answerOne();
  await answerOne();
  expect([(await first).status, (await others).length, shop.requests.length]).toEqual([200, 20, 2]);
});

it('a client does not wait behind the queue of another, not even for the same URL', async () => {
  resolver = create(2);
  const crowd = Array.from({ length: 50 }, (_, i) => ask(`/${i}`));
  await until(async () => waiting.length === 1);
  // The other client has the second permit at once.
  const other = ask('/49', 'b');
  await until(async () => waiting.length === 2);
  waiting.pop()?.();
  expect((await other).status).toBe(200);
  const last = crowd.at(-1);
  for (let i = 0; i < 49; i += 1) await answerOne();
  // Its own look-up finds the mapping that the other client's look-up stored.
  expect((await last)?.field('Cache-Status')).toMatch(/fwd=miss; stored/);
  await Promise.all(crowd);
  expect(shop.requests.length).toBe(50);
});

it('504 when the shop does not answer, 503 when no permit is free within the deadline', async () => {
  const permits = new FairSemaphore({ permits: 1, capacity: 10 });
  resolver = createResolver({ upstream: { ask: () => new Promise(() => {}), permits, timeoutMs: 50 } });
  const [first, second] = await Promise.all([ask('/1'), ask('/2')]);
  expect([first.status, second.status, permits.size]).toEqual([504, 503, 1]);
  expect(second.field('Cache-Control')).toBe('no-store');
});
