import { afterEach, expect, it } from 'vitest';
import { openRawConnection } from '../harness/raw-client.ts';
import { answer, type RecordingUpstream, startRecordingUpstream } from '../harness/recording-upstream.ts';
import { type Shopward, startShopward } from '../harness/shopward.ts';

let upstream: RecordingUpstream;
let shopward: Shopward;

afterEach(async () => {
  await shopward.kill();
  await upstream.close();
});

const get = 'GET /open HTTP/1.1\r\nHost: shop.example\r\n\r\n';

async function start(drainDelay: string) {
  upstream = await startRecordingUpstream(() => answer());
  shopward = await startShopward({
    upstream: `http://127.0.0.1:${upstream.port}`,
    config: { listen: { drainDelay } },
  });
}

async function drain() {
  shopward.signal('SIGTERM');
  await shopward.waitForLog(({ event }) => event === 'draining');
}

it('in the grace of a drain, requests are answered on idle and on new connections, each with Connection: close', async () => {
  await start('3s');
  const idle = await openRawConnection(shopward.port, { timeoutMs: 20_000 });
  await idle.write(get);
  expect((await idle.readResponse()).field('connection')).not.toBe('close');
  await drain();
  expect((await fetch(`${shopward.adminUrl}/readyz`)).status).toBe(503);
  const fresh = await openRawConnection(shopward.port, { timeoutMs: 20_000 });
  for (const connection of [idle, fresh]) {
    await connection.write(get);
    const response = await connection.readResponse();
    expect([response.status, response.field('connection')]).toEqual([200, 'close']);
    expect((await connection.readAll()).toString()).toBe('');
  }
  expect(await shopward.exited).toBe(0);
});

it.each([
  ['nothing', ''],
  ['half a head', 'GET /open HTTP/1.1\r\nHo'],
])('a connection that sent %s does not hold a drain up to its deadline', async (_, bytes) => {
  await start('0s');
  const silent = await openRawConnection(shopward.port, { timeoutMs: 25_000 });
  if (bytes !== '') await silent.write(bytes);
  const began = performance.now();
  await drain();
  expect(await shopward.exited).toBe(0);
  // The deadline is 30 s; half a head is waited for 5 s.
  expect(performance.now() - began).toBeLessThan(20_000);
  silent.close();
});
