import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import type { CanonicalRequest } from '../../src/http/canonical-request.ts';
import { createWebSocketForwarder, type WebSocketForwarder } from '../../src/upstream/websocket.ts';

const handshake = 'GET / HTTP/1.1\r\nHost: s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';
const accepted = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';
const declined = 'HTTP/1.1 403 Forbidden\r\nTransfer-Encoding: chunked\r\n\r\n';
const refused = 'HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n';
const patienceMs = 400;
const large = Buffer.alloc(16_000_000, 'a');

interface Ends {
  readonly client: Socket;
  readonly shop: Socket;
}

let forwarder: WebSocketForwarder;
/** As the product has it: it sets no patience. */
let usualForwarder: WebSocketForwarder;
let isUsual = false;
let act: (shop: Socket) => void = () => {};
/** Every socket of the front, of its clients and of the shop that is still there. */
const sockets = new Set<Socket>();
const keep = (socket: Socket) => {
  sockets.add(socket);
  socket.on('error', () => {}).once('close', () => sockets.delete(socket));
};
const shop = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
  keep(socket);
  socket.once('data', () => act(socket));
});
const front = createHttpServer();

beforeAll(async () => {
  shop.listen(0, '127.0.0.1');
  await once(shop, 'listening');
  const options = {
    upstream: { scheme: 'http', hostname: '127.0.0.1', port: (shop.address() as AddressInfo).port },
    connectTimeoutMs: patienceMs,
    handshakeTimeoutMs: patienceMs,
    limit: 1_000,
  } as const;
  forwarder = createWebSocketForwarder({ ...options, stallTimeoutMs: patienceMs });
  usualForwarder = createWebSocketForwarder(options);
  front.on('connection', keep);
  front.on('upgrade', (_incoming, socket: Socket, head) => {
    const request = { method: 'GET', path: '/', query: '', fields: ['Host', 's'] };
    const one = isUsual ? usualForwarder : forwarder;
    void one.forward(request as unknown as CanonicalRequest, socket, head, () => socket.end(refused));
  });
  front.listen(0, '127.0.0.1');
  await once(front, 'listening');
});
afterAll(() => {
  front.close();
  shop.close();
});

async function dial(): Promise<Socket> {
  const client = connect({
    port: (front.address() as AddressInfo).port,
    host: '127.0.0.1',
    allowHalfOpen: true,
  });
  client.setNoDelay(true);
  keep(client);
  await once(client, 'connect');
  return client;
}

/** The handshake has gone through, and nobody reads yet; tried again where the machine stood still for as long as it may take. */
async function join(): Promise<Ends> {
  for (;;) {
    let shop: Socket | undefined;
    act = (socket) => {
      // Of a handshake that was given up before.
      shop?.destroy();
      shop = socket.pause();
      socket.write(accepted);
    };
    const client = await dial();
    client.write(handshake);
    const [octets] = await once(client, 'data');
    client.pause();
    if (shop !== undefined && String(octets) !== refused) return { client, shop };
    client.destroy();
    shop?.destroy();
  }
}

/** Nothing is left of it: no place, and no connection on our side; what the peers keep is theirs. */
async function expectNothingLeft(ends: readonly Socket[]): Promise<void> {
  await expect.poll(() => forwarder.open).toBe(0);
  const theirs = new Set(ends);
  await expect
    .poll(() => [...sockets].filter((one) => !theirs.has(one) && one.remotePort !== undefined).length)
    .toBe(0);
  for (const end of ends) end.destroy();
  await expect.poll(() => sockets.size).toBe(0);
  const { port } = shop.address() as AddressInfo;
  await expect.poll(() => handlesTo(port)).toBe(0);
}

/** Connections of this process to a port, whoever has them. */
function handlesTo(port: number): number {
  const { _getActiveHandles } = process as unknown as { _getActiveHandles(): Partial<Socket>[] };
  return _getActiveHandles.call(process).filter(({ remotePort }) => remotePort === port).length;
}

afterEach(() => {
  vi.useRealTimers();
  for (const socket of sockets) socket.destroy();
});

const ways: Record<string, (one: Socket) => void> = {
  'ends its side and reads on': (one) => void one.resume().end(),
  'ends its side and reads nothing': (one) => void one.end(),
  resets: (one) => void one.resetAndDestroy(),
  closes: (one) => void one.destroy(),
  'sends much and closes': (one) => {
    one.write(large);
    setTimeout(() => one.destroy(), 50);
  },
  'sends much and goes on': (one) => void one.write(large),
  'sends half a frame and ends': (one) => void one.resume().end(Buffer.from([0x81, 0x7f, 0])),
};
const orders = Object.keys(ways).flatMap((first) => [
  ['the client', first, 'the other does nothing', undefined] as const,
  ['the shop', first, 'the other does nothing', undefined] as const,
  ...Object.keys(ways).map((then) => ['the client', first, then, then] as const),
  ...Object.keys(ways).map((then) => ['the shop', first, then, then] as const),
]);

it.each(orders)('%s %s, and then the other: %s', async (who, first, _, then) => {
  const ends = await join();
  const [one, other] = who === 'the client' ? [ends.client, ends.shop] : [ends.shop, ends.client];
  (ways[first] as (one: Socket) => void)(one);
  if (then !== undefined) {
    await sleep(5);
    (ways[then] as (one: Socket) => void)(other);
  }
  await expectNothingLeft([one, other]);
});

it('an open WebSocket may be silent for longer than anybody waits, and goes on', async () => {
  const ends = await join();
  await sleep(2 * patienceMs);
  ends.shop.write('late');
  expect(String((await once(ends.client.resume(), 'data'))[0])).toBe('late');
  expect(forwarder.open).toBe(1);
  ends.client.destroy();
  await expectNothingLeft([ends.client, ends.shop]);
});

it('an end that is not answered is borne for 30 s, and no longer', async () => {
  isUsual = true;
  const ends = await join();
  isUsual = false;
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  ends.client.end();
  const heard = once(ends.shop.resume(), 'end');
  await heard;
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  vi.advanceTimersByTime(29_999);
  for (let i = 0; i < 20; i += 1) await turn();
  expect(usualForwarder.open).toBe(1);
  vi.advanceTimersByTime(1);
  for (let i = 0; i < 200 && usualForwarder.open > 0; i += 1) await turn();
  expect(usualForwarder.open).toBe(0);
});

/** What the shop says to a handshake; after it, silence. */
const answers: Record<string, Buffer> = {
  'the answer of a WebSocket': Buffer.from(accepted),
  'a refusal': Buffer.from(`${declined}2\r\nno\r\n0\r\n\r\n`),
};

it.each(Object.entries(answers))('%s, cut at every octet: then silence, or the end', async (_, answer) => {
  for (const finish of [
    () => {},
    (socket: Socket) => void socket.end(),
    (socket: Socket) => void socket.destroy(),
  ]) {
    const shops: Socket[] = [];
    const clients: Socket[] = [];
    for (let length = 0; length < answer.length; ) {
      const heard = new Promise<void>((resolve) => {
        act = (socket) => {
          shops.push(socket);
          socket.write(answer.subarray(0, length), () => finish(socket));
          length += 1;
          resolve();
        };
      });
      const client = await dial();
      clients.push(client.resume());
      client.write(handshake);
      // Given up before the shop has heard of it, where the machine stood still: then this length again.
      await Promise.race([heard, once(client, 'data')]);
    }
    expect(forwarder.open).toBeLessThanOrEqual(answer.length);
    await expectNothingLeft([...shops, ...clients]);
  }
});

it('one octet at a time, both ways', async () => {
  act = async (socket) => {
    for (const octet of accepted) {
      socket.write(octet);
      await sleep(1);
    }
    socket.pipe(socket);
  };
  let client: Socket | undefined;
  let seen: string;
  do {
    client?.destroy();
    client = await dial();
    seen = '';
    client.on('data', (octets: Buffer) => {
      seen += octets.toString('latin1');
    });
    for (const octet of handshake) {
      client.write(octet);
      await sleep(0);
    }
    await expect.poll(() => seen.endsWith('\r\n\r\n')).toBe(true);
  } while (seen === refused);
  expect(seen).toMatch(/^HTTP\/1\.1 101 /);
  for (let i = 0; i < 200; i += 1) client.write('a');
  await expect.poll(() => seen.endsWith('a'.repeat(200))).toBe(true);
  client.destroy();
  await expectNothingLeft([client]);
});

it('a 101 that comes when the handshake was given up joins nobody', async () => {
  const shops: Socket[] = [];
  act = (socket) => {
    shops.push(socket);
    setTimeout(() => socket.write(accepted), 2 * patienceMs);
  };
  const client = await dial();
  client.write(handshake);
  const [octets] = await once(client, 'data');
  expect(String(octets)).toBe(refused);
  await sleep(3 * patienceMs);
  await expectNothingLeft([client, ...shops]);
});

it.each([
  [
    'without end',
    (socket: Socket) => {
      const more = setInterval(() => socket.write('1\r\na\r\n'), 20);
      socket.once('close', () => clearInterval(more));
    },
  ],
  [
    'longer than its client reads',
    (socket: Socket) => {
      const piece = Buffer.from(`10000\r\n${'a'.repeat(65_536)}\r\n`);
      const write = () => {
        while (!socket.destroyed && socket.write(piece));
      };
      socket.on('drain', write);
      write();
    },
  ],
])('a refusal %s ends with the handshake’s time, and is not kept here', async (_, go) => {
  let taken = 0;
  act = (socket) => {
    socket.write(declined);
    go(socket);
    socket.once('close', () => {
      taken = socket.bytesWritten - socket.writableLength;
    });
  };
  const client = await dial();
  client.pause().write(handshake);
  await expectNothingLeft([client]);
  // Kernels keep some megabytes of a connection that nobody reads; the shop would send gigabytes.
  expect(taken).toBeLessThan(40_000_000);
});
