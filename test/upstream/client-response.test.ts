import { once } from 'node:events';
import { createServer, IncomingMessage, ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { Writable } from 'node:stream';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { ClientResponse } from '../../src/upstream/client-response.ts';

const patience = { writeStallTimeoutMs: 10_000, bodyTimeoutMs: 60_000 };
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
  const unread = new ClientResponse(incoming, response, patience, { onDrain, onGone });
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

describe('an interim response', () => {
  it.each<[string, number, { httpVersion?: string; destroyed?: boolean; isBegun?: boolean }, boolean]>([
    ['is passed on', 103, {}, true],
    ['of 100 is ours to give', 100, {}, false],
    ['of 101 is none', 101, {}, false],
    ['is nothing that HTTP/1.0 knows', 103, { httpVersion: '1.0' }, false],
    ['has nobody to go to', 103, { destroyed: true }, false],
    ['is too late after the head', 103, { isBegun: true }, false],
  ])('%s', (_, status, { httpVersion = '1.1', destroyed = false, isBegun = false }, isPassedOn) => {
    const writeInformation = vi.fn();
    const response = {
      on() {},
      destroyed,
      socket: null,
      writeInformation,
      writeHead() {},
      write: () => true,
    };
    const incoming = { httpVersion, headers: {}, complete: true, method: 'GET' };
    const client = new ClientResponse(
      incoming as unknown as IncomingMessage,
      response as unknown as ServerResponse,
      patience,
      { onDrain() {}, onGone() {} },
    );
    if (isBegun) {
      client.begin(200, 'OK', []);
      client.flush();
    }
    expect([client.isGone, client.isBegun]).toEqual([destroyed, isBegun]);
    client.inform(status, ['Link', '</a>', 'Connection', 'close']);
    expect(writeInformation.mock.calls).toEqual(isPassedOn ? [[status, ['Link', '</a>']]] : []);
  });
});

/** What a real client gets of a response. */
async function answer(act: (client: ClientResponse) => void) {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  ends.push(() => {
    server.closeAllConnections();
    server.close();
  });
  const reading = fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`).then(
    async (response) => `${response.status} ${await response.text()}`,
    () => 'cut',
  );
  const [incoming, response] = (await once(server, 'request')) as [IncomingMessage, ServerResponse];
  const client = new ClientResponse(incoming, response, patience, { onDrain() {}, onGone() {} });
  act(client);
  return { client, got: await reading.catch(() => 'cut') };
}

describe('what is counted of a response', () => {
  const fields = ['Content-Type', 'text/plain'];

  it('whole: its octets and its status', async () => {
    const { client, got } = await answer((one) => one.send(201, 'Created', fields, Buffer.from('whole')));
    expect([got, client.bytes, client.status]).toEqual(['201 whole', 5, 201]);
  });

  it('in pieces: all of them, a small first one as well', async () => {
    const { client, got } = await answer((one) => {
      one.begin(200, 'OK', fields);
      one.write(Buffer.from('a'));
      one.write(Buffer.from('bc'));
      one.end();
    });
    expect([got, client.bytes]).toEqual(['200 abc', 3]);
  });

  it('that is withdrawn before its body: nothing either, and no octet is counted', async () => {
    const { client, got } = await answer((one) => {
      one.begin(200, 'OK', fields);
      one.withdraw();
      one.send(502, 'Bad Gateway', fields);
    });
    expect([got, client.bytes, client.status]).toEqual(['502 ', 0, 502]);
  });

  it('that is withdrawn: nothing, and something else may be sent', async () => {
    const { client, got } = await answer((one) => {
      one.begin(200, 'OK', fields);
      one.write(Buffer.from('abc'));
      one.withdraw();
      expect([one.bytes, one.isBegun]).toEqual([0, false]);
      one.send(502, 'Bad Gateway', fields);
    });
    expect([got, client.bytes, client.status]).toEqual(['502 ', 0, 502]);
  });

  it('that is cut: its client sees that, and gets nothing more', async () => {
    const { client, got } = await answer((one) => {
      one.begin(200, 'OK', ['Content-Length', '10']);
      one.write(Buffer.from('abc'));
      one.flush();
      one.cut();
      expect(one.write(Buffer.from('d'))).toBe(true);
      one.end();
    });
    expect([got, client.isGone, client.bytes]).toEqual(['cut', true, 3]);
  });
});

describe('a client that reads slowly', () => {
  /** Milliseconds until it is cut, at most 60,000, if it takes 1,000 octets and then waits. */
  async function timeOf(bytesPerSecond: number, responseBytesPerSecond: number): Promise<number> {
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
    const events = { onDrain: () => void client.write(Buffer.alloc(1_000)), onGone: () => {} };
    const slow = { writeStallTimeoutMs: 60_000, bodyTimeoutMs: 20_000, responseBytesPerSecond };
    const client = new ClientResponse(incoming, response, slow, events);
    client.begin(200, 'OK', []);
    for (let i = 0; i < 3; i += 1) client.write(Buffer.alloc(5_000));
    let ms = 0;
    for (; ms < 60_000 && !response.destroyed; ms += 100) {
      vi.advanceTimersByTime(100);
      if (bytesPerSecond > 0 && ms % (1_000_000 / bytesPerSecond) === 0) taken();
      await new Promise((resolve) => process.nextTick(resolve));
    }
    return ms;
  }

  it.each([
    ['nothing', 0, 20_000],
    ['half of the rate', 2_000, 40_000],
    ['more', 5_000, 60_000],
  ])('and takes %s has its time', async (_, bytesPerSecond, expectedMs) => {
    const ms = await timeOf(bytesPerSecond, 4_000);
    expect(Math.abs(ms - expectedMs)).toBeLessThan(6_000);
  });
});
