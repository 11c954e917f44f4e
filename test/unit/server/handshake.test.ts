import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { Listener } from '../../../src/server/listener.ts';
import { openRawConnection } from '../../harness/raw-client.ts';
import { testCertificate, testKey } from '../../harness/tls-fixture.ts';

// Concurrent, because two of them wait for the whole deadline.
it.concurrent.each([
  ['says nothing', ''],
  ['stops in the middle of its hello', '\x16\x03\x01\x02\x00\x01'],
  ['speaks plain HTTP', 'GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n'],
])('the connection of a client that %s is closed without an answer', async (_, bytes) => {
  const refused: string[] = [];
  const listener = new Listener({
    host: '127.0.0.1',
    port: 0,
    keepAliveTimeoutMs: 60_000,
    requestHeadersBytes: 16_384,
    tls: { cert: testCertificate, key: testKey },
    rejectMalformed: (why) => refused.push(why),
    handle: () => {
      refused.push('handled');
      return undefined;
    },
  });
  const { port }: AddressInfo = await listener.listen();
  const client = await openRawConnection(port);
  if (bytes !== '') await client.write(bytes);
  // Resolves when the server closes the connection.
  await client.readAll();
  expect(refused).toEqual([]);
  await listener.drain({ graceMs: 0, withinMs: 60_000 });
});
