import { once } from 'node:events';
import { createServer, IncomingMessage, ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { Writable } from 'node:stream';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { ClientResponse } from '../../../src/upstream/client-response.ts';

const patience = { writeStallTimeoutMs: 10_000, bodyTimeoutMs: 3_200 };
const ends: (() => unknown)[] = [];
afterEach(() => {
  vi.useRealTimers();
  for (const end of ends.splice(0).reverse()) end();
});

/** A response to a client that does not read, with full buffers of the kernel. */
async function startUnread(onGone: () => void) {
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
  const unread = new ClientResponse(incoming, response, patience, { onDrain() {}, onGone });
  unread.begin(200, 'OK', ['Content-Type', 'text/plain']);
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  const piece = Buffer.alloc(65_536, 'a');
  do {
    unread.write(piece);
    await turn();
  } while (response.writableLength === 0);
  return { response, unread, turn };
}

it.each([
  ['is not over', () => {}],
  ['is over', (unread: ClientResponse) => unread.end()],
])('a client that reads nothing of a response that %s is cut after 10 s', async (_, finish) => {
  const onGone = vi.fn();
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const { response, unread, turn } = await startUnread(onGone);
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

describe('a client that reads slowly', () => {
  /** Milliseconds until the client is cut, at most 300,000, if it reads this many octets each time. */
  async function timeOf(octets: number, everyMs: number): Promise<number> {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    let taken: () => void = () => {};
    const socket = new Writable({
      highWaterMark: 1,
      write(_chunk, _encoding, done) {
        taken = done;
      },
    });
    const incoming = Object.assign(new IncomingMessage(socket as Socket), {
      method: 'GET',
      httpVersion: '1.1',
    });
    const response = new ServerResponse(incoming);
    response.assignSocket(socket as Socket);
    const events = { onDrain: () => void client.write(Buffer.alloc(octets)), onGone: () => {} };
    const slow = { writeStallTimeoutMs: 60_000, bodyTimeoutMs: 20_000 };
    const client = new ClientResponse(incoming, response, slow, events);
    client.begin(200, 'OK', []);
    for (let i = 0; i < 3; i += 1) client.write(Buffer.alloc(5_000));
    let ms = 0;
    for (; ms < 300_000 && !response.destroyed; ms += 100) {
      vi.advanceTimersByTime(100);
      if (octets > 0 && ms % everyMs === 0) taken();
      await new Promise((resolve) => process.nextTick(resolve));
    }
    return ms;
  }

  it.each([
    ['nothing', 0, 0, 60_000],
    ['half of the required rate', 1_000, 500, 120_000],
    ['more', 5_000, 1_000, 300_000],
    ['64 KB/s, which a kernel shows every 22 s', 700_000, 11_000, 300_000],
  ])('takes %s, and is cut at the expected time or never', async (_, octets, everyMs, expectedMs) => {
    const ms = await timeOf(octets, everyMs);
    expect(Math.abs(ms - expectedMs)).toBeLessThan(18_000);
  });
});
