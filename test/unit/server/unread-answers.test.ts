import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { it, vi } from 'vitest';
import { endResponse } from '../../../src/http/write-response.ts';
import { listen } from '../../harness/listen.ts';

it.each([
  ['short', 4_000],
  ['long', 40_000],
])('a client that reads none of its %s answers is disconnected', async (_, length) => {
  const body = 'x'.repeat(length);
  let unread = false;
  const server = createServer((incoming, response) => {
    response.writeHead(200, ['Content-Length', String(length)]);
    endResponse(incoming, response, Buffer.from(body));
    setImmediate(() => {
      unread ||= response.writableLength > 0;
    });
  });
  const { port } = await listen(server);
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const accepted = once(server, 'connection');
  const client = connect(port, '127.0.0.1').pause();
  client.on('error', () => {});
  const [socket] = await accepted;
  const closed = once(socket, 'close');
  const ask = () => {
    if (!unread) client.write('GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n', () => setImmediate(ask));
  };
  ask();
  while (!unread) await new Promise((resolve) => setImmediate(resolve));
  vi.advanceTimersByTime(60_000);
  vi.useRealTimers();
  // Hangs here if the connection stays open.
  await closed;
  client.destroy();
  server.close();
});
