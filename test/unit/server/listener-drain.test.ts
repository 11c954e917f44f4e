import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { expect, it } from 'vitest';
import { Listener } from '../../../src/server/listener.ts';
import { openRawConnection } from '../../harness/raw-client.ts';

const get = 'GET /open HTTP/1.1\r\nHost: shop.example\r\n\r\n';

function createListener(answerBy: (response: ServerResponse) => void): Listener {
  return new Listener({
    host: '127.0.0.1',
    port: 0,
    keepAliveTimeoutMs: 60_000,
    requestHeadersBytes: 16_384,
    rejectMalformed: (_why, socket) => socket.destroy(),
    handle: (_incoming, response) => {
      answerBy(response);
      return undefined;
    },
  });
}

it.concurrent('a connection that sent half a head does not hold a drain up to its deadline', async ({
  expect,
}) => {
  const listener = createListener((response) => void response.end());
  const accepted = once(listener.server, 'connection') as Promise<[Socket]>;
  const { port } = await listener.listen();
  const silent = await openRawConnection(port);
  const half = 'GET /open HTTP/1.1\r\nHo';
  await silent.write(half);
  const [socket] = await accepted;
  await expect.poll(() => socket.bytesRead).toBe(half.length);
  // An hour: what ends the drain is not its deadline.
  await listener.drain({ graceMs: 0, withinMs: 3_600_000 });
  silent.close();
});

it.concurrent('a request that has not ended at the deadline is cut, after it was noted', async () => {
  const cut = { isDue: false };
  const { promise: noted, resolve } = Promise.withResolvers<boolean>();
  const listener = createListener((response) => {
    response.write('data: 1\n\n');
    response.on('close', () => resolve(cut.isDue));
  });
  const { port } = await listener.listen();
  const client = await openRawConnection(port);
  const asked = once(listener.server, 'request');
  await client.write(get);
  await asked;
  await listener.drain({ graceMs: 0, withinMs: 100, cut });
  expect(await noted).toBe(true);
  client.close();
});

it.concurrent('an answer that its client has not read to its end yet is not cut by a drain', async () => {
  // More than the kernel takes without a reader.
  const body = Buffer.alloc(32 * 1024 * 1024, 'x');
  const answered = Promise.withResolvers<void>();
  const listener = createListener((response) => {
    response.end(body);
    answered.resolve();
  });
  const { port } = await listener.listen();
  const reader = connect(port, '127.0.0.1').pause();
  let bytes = 0;
  reader.on('error', () => {});
  reader.write(get);
  await answered.promise;
  const drained = listener.drain({ graceMs: 0, withinMs: 3_600_000 });
  reader.on('data', (chunk) => {
    bytes += chunk.length;
  });
  reader.resume();
  await once(reader, 'close');
  await drained;
  expect(bytes).toBeGreaterThan(body.length);
});
