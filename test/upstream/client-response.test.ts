import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { afterEach, expect, it, vi } from 'vitest';
import { ClientResponse } from '../../src/upstream/client-response.ts';

const ends: (() => unknown)[] = [];
afterEach(() => {
  vi.useRealTimers();
  for (const end of ends.splice(0).reverse()) end();
});

/** A response to a client that does not read, whose kernel takes no more. */
async function startUnread(onDrain: () => void, onGone: () => void) {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  ends.push(() => {
    server.closeAllConnections();
    server.close();
  });
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1').pause();
  client.on('error', () => {});
  client.write('GET / HTTP/1.1\r\nHost: s\r\n\r\n');
  ends.push(() => client.destroy());
  const [incoming, response] = (await once(server, 'request')) as [IncomingMessage, ServerResponse];
  const unread = new ClientResponse(incoming, response, 10_000, { onDrain, onGone });
  unread.begin(200, 'OK', ['Content-Type', 'text/plain']);
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  const piece = Buffer.alloc(65_536, 'a');
  do {
    unread.write(piece);
    await turn();
  } while (response.writableLength === 0);
  return { client, response, unread, turn };
}

it('two pieces wait at most, however short they are, and it goes on once they are taken', async () => {
  const onDrain = vi.fn();
  const { client, response, unread, turn } = await startUnread(onDrain, () => {});
  const before = response.writableLength;
  expect(unread.write(Buffer.from('a'))).toBe(false);
  await turn();
  expect(response.writableLength - before).toBeLessThan(20);
  expect(onDrain).not.toHaveBeenCalled();
  client.resume();
  await vi.waitFor(() => expect(onDrain).toHaveBeenCalled());
  expect(response.writableLength).toBe(0);
  expect(unread.write(Buffer.from('a'))).toBe(true);
});

it.each([
  ['is not over', () => {}],
  ['is over', (unread: ClientResponse) => unread.end()],
])('a client that takes nothing of a response that %s is let go', async (_, finish) => {
  const onGone = vi.fn();
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const { response, unread, turn } = await startUnread(() => {}, onGone);
  unread.write(Buffer.from('a'));
  finish(unread);
  await turn();
  await turn();
  vi.advanceTimersByTime(9_000);
  expect(response.destroyed).toBe(false);
  vi.advanceTimersByTime(1_001);
  expect(response.destroyed).toBe(true);
  await turn();
  expect(onGone).toHaveBeenCalledOnce();
});
