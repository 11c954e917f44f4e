import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { connect, createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, type TestContext, vi } from 'vitest';
import type { CanonicalRequest } from '../../../src/http/canonical-request.ts';
import { InFlight } from '../../../src/server/in-flight.ts';
import { responseOn } from '../../../src/server/upgrade.ts';
import { createUpstreamClient } from '../../../src/upstream/client.ts';
import { createForwarder } from '../../../src/upstream/forwarder.ts';
import { OpenWebSocket } from '../../../src/upstream/websocket.ts';
import { listen } from '../../harness/listen.ts';

const handshake = 'GET / HTTP/1.1\r\nHost: s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';
const accepted = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';
const declined = 'HTTP/1.1 403 Forbidden\r\nTransfer-Encoding: chunked\r\n\r\n';
const refused = 'HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n';
const patienceMs = 400;
const often = { interval: 30 };
const large = Buffer.alloc(8_000_000, 'a');

interface Ends {
  readonly client: Socket;
  readonly shop: Socket;
}

interface Stage {
  readonly forwarder: { readonly open: number };
  /** Called with the socket of each handshake from now on. */
  act: (shop: Socket) => unknown;
  /** Connects a client. */
  dial(): Promise<Socket>;
  /** Completes a handshake without reading on; retries if the machine paused for too long. */
  join(): Promise<Ends>;
  /** Expects no open slot and no connection of the proxy. The peers may keep theirs. */
  expectNothingLeft(ends: readonly Socket[]): Promise<void>;
}

/** A shop, and a front that only forwards. Both are closed when the test ends. */
async function startStage(
  context: TestContext,
  stallTimeoutMs: number | undefined = patienceMs,
): Promise<Stage> {
  /** Open sockets of the front, its clients and the shop. */
  const sockets = new Set<Socket>();
  const keep = (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => {}).once('close', () => sockets.delete(socket));
  };
  const shop = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    keep(socket);
    // If the machine paused, the proxy gave up before it sent the handshake.
    const giveUp = () => socket.destroy();
    socket.once('end', giveUp).once('data', () => {
      socket.off('end', giveUp);
      stage.act(socket);
    });
  });
  const { port: shopPort } = await listen(shop);
  const forwarder = createForwarder({
    client: createUpstreamClient({
      upstream: { scheme: 'http', hostname: '127.0.0.1', port: shopPort },
      connectTimeoutMs: patienceMs,
      connections: 1_000,
      queueLimit: 1,
      queueTimeoutMs: patienceMs,
      forUpgrades: true,
    }),
    responseTimeoutMs: patienceMs,
    ...{ bodyLimitBytes: 1, bodyTimeoutMs: patienceMs, writeStallTimeoutMs: patienceMs },
    streamingBodies: new InFlight({ limit: 1, sharePercent: 100 }),
  });
  const front = createHttpServer();
  front.on('connection', keep);
  front.on('upgrade', (incoming, socket: Socket) => {
    const fields = { method: 'GET', path: '/', query: '', fields: ['Host', 's'], body: 'none' };
    const request = fields as unknown as CanonicalRequest;
    const join = (client: Socket, upstream: Socket) =>
      void new OpenWebSocket(client, upstream, stallTimeoutMs);
    const response = responseOn(incoming, socket);
    void forwarder.forward(
      { request, incoming, response, upgrade: { join } },
      {
        conclude({ rejection }) {
          if (rejection === undefined) return;
          response.sendDate = false;
          response.writeHead(502, ['Content-Length', '0']).end();
        },
      },
    );
  });
  const { port } = await listen(front);
  context.onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    front.close();
    shop.close();
  });
  const stage: Stage = {
    forwarder: {
      get open() {
        return forwarder.inFlight + forwarder.queued;
      },
    },
    act: () => {},
    async dial() {
      const client = connect({ port, host: '127.0.0.1', allowHalfOpen: true, noDelay: true });
      keep(client);
      await once(client, 'connect');
      return client;
    },
    async join() {
      for (;;) {
        let shop: Socket | undefined;
        stage.act = (socket) => {
          // The socket of an earlier attempt.
          shop?.destroy();
          shop = socket.pause();
          socket.write(accepted);
        };
        const client = await stage.dial();
        client.write(handshake);
        const [octets] = await once(client, 'data');
        client.pause();
        if (shop !== undefined && String(octets) !== refused) return { client, shop };
        client.destroy();
        shop?.destroy();
      }
    },
    async expectNothingLeft(ends) {
      const { expect } = context;
      await expect.poll(() => stage.forwarder.open, often).toBe(0);
      const theirs = new Set(ends);
      await expect
        .poll(
          () => [...sockets].filter((one) => !theirs.has(one) && one.remotePort !== undefined).length,
          often,
        )
        .toBe(0);
      for (const end of ends) end.destroy();
      await expect.poll(() => sockets.size, often).toBe(0);
      await expect.poll(() => handlesTo(shopPort), often).toBe(0);
    },
  };
  return stage;
}

/** Open connections of this process to a port. */
function handlesTo(port: number): number {
  const { _getActiveHandles } = process as unknown as { _getActiveHandles(): Partial<Socket>[] };
  return _getActiveHandles.call(process).filter(({ remotePort }) => remotePort === port).length;
}

const ways: Record<string, (one: Socket) => void> = {
  'ends its side and reads nothing': (one) => void one.end(),
  resets: (one) => void one.resetAndDestroy(),
  'sends much and closes': (one) => {
    one.write(large);
    setTimeout(() => one.destroy(), 50);
  },
  'sends much and goes on': (one) => void one.write(large),
  'sends half a frame and ends': (one) => void one.resume().end(Buffer.from([0x81, 0x7f, 0])),
};
const orders = Object.keys(ways).flatMap((first) => [
  ['the client', first, 'does nothing', undefined] as const,
  ['the shop', first, 'does nothing', undefined] as const,
  ...Object.keys(ways).map((then) => ['the client', first, then, then] as const),
  ...Object.keys(ways).map((then) => ['the shop', first, then, then] as const),
]);

/** The shop's answer to a handshake; it sends nothing more. */
const answers: Record<string, Buffer> = {
  'the answer of a WebSocket': Buffer.from(accepted),
  'a refusal': Buffer.from(`${declined}2\r\nno\r\n0\r\n\r\n`),
};

// The longest test first.
describe.concurrent('a WebSocket', () => {
  it('a 101 after the time-out of the handshake joins no sockets', async (context) => {
    const stage = await startStage(context);
    const shops: Socket[] = [];
    stage.act = (socket) => {
      shops.push(socket);
      setTimeout(() => socket.write(accepted), 2 * patienceMs);
    };
    const client = await stage.dial();
    client.write(handshake);
    const [octets] = await once(client, 'data');
    expect(String(octets)).toBe(refused);
    await sleep(3 * patienceMs);
    await stage.expectNothingLeft([client, ...shops]);
  });

  it.for(Object.entries(answers))(
    '%s, cut at every octet, then silent or ended: no connection is left',
    async ([, answer], context) => {
      const stage = await startStage(context);
      for (const finish of [
        () => {},
        (socket: Socket) => void socket.end(),
        (socket: Socket) => void socket.destroy(),
      ]) {
        const shops: Socket[] = [];
        const clients: Socket[] = [];
        for (let length = 0; length < answer.length; ) {
          const octets = answer.subarray(0, length);
          const heard = new Promise<void>((resolve) => {
            stage.act = (socket) => {
              shops.push(socket);
              socket.write(octets, () => finish(socket));
              length = octets.length + 1;
              resolve();
            };
          });
          const client = await stage.dial();
          clients.push(client.resume());
          client.write(handshake);
          // If the machine paused, the proxy gave up before the shop heard of it: try this length again.
          await Promise.race([heard, once(client, 'data')]);
        }
        expect(stage.forwarder.open).toBeLessThanOrEqual(answer.length);
        await stage.expectNothingLeft([...shops, ...clients]);
      }
    },
  );

  it.for([
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
        const chunk = Buffer.from(`10000\r\n${'a'.repeat(65_536)}\r\n`);
        const write = () => {
          while (!socket.destroyed && socket.write(chunk));
        };
        socket.on('drain', write);
        write();
      },
    ],
  ] as const)(
    'a refusal %s is cut at the time-out of the handshake, and not buffered',
    async ([, go], context) => {
      const stage = await startStage(context);
      let taken = 0;
      stage.act = (socket) => {
        socket.write(declined);
        go(socket);
        socket.once('close', () => {
          taken = socket.bytesWritten - socket.writableLength;
        });
      };
      const client = await stage.dial();
      client.pause().write(handshake);
      await stage.expectNothingLeft([client]);
      // Kernels buffer some megabytes for a client that does not read; the shop would send gigabytes.
      expect(taken).toBeLessThan(40_000_000);
    },
  );

  it.for(orders)('%s %s, then the other %s: no connection is left', async ([who, first, , then], context) => {
    const { join, expectNothingLeft } = await startStage(context);
    const ends = await join();
    const [one, other] = who === 'the client' ? [ends.client, ends.shop] : [ends.shop, ends.client];
    (ways[first] as (one: Socket) => void)(one);
    if (then !== undefined) {
      await sleep(5);
      (ways[then] as (one: Socket) => void)(other);
    }
    await expectNothingLeft([one, other]);
  });
});

// Not concurrent, because its fake clock affects all tests.
it('a WebSocket with one ended side is closed after 30 s', async (context) => {
  context.onTestFinished(() => void vi.useRealTimers());
  const { forwarder, join } = await startStage(context, 30_000);
  const ends = await join();
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  ends.client.end();
  const heard = once(ends.shop.resume(), 'end');
  await heard;
  const tick = () => new Promise((resolve) => setImmediate(resolve));
  vi.advanceTimersByTime(29_999);
  for (let i = 0; i < 20; i += 1) await tick();
  expect(forwarder.open).toBe(1);
  vi.advanceTimersByTime(1);
  for (let i = 0; i < 200 && forwarder.open > 0; i += 1) await tick();
  expect(forwarder.open).toBe(0);
});
