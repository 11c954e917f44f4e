import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { connect, type Socket } from 'node:net';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { type AdminServer, createAdminServer } from '../../../src/admin/admin-server.ts';
import { eventually } from '../../harness/eventually.ts';
import { exchangeRaw } from '../../harness/raw-client.ts';

const token = 'a-token-for-operators';
let server: AdminServer;
const crowd: Socket[] = [];
/** Resolves when the request to the endpoint without an answer arrives. */
const asked = Promise.withResolvers<void>();
afterEach(async () => {
  for (const socket of crowd.splice(0)) socket.destroy();
  await server.close();
});

async function start(
  readiness: () => Promise<{ ready: boolean; reasons: string[] }>,
  metrics = async () => 'metrics\n',
): Promise<number> {
  server = createAdminServer({
    host: '127.0.0.1',
    port: 0,
    token,
    hosts: [],
    // Longer than any test, so that no connection ends because it is slow.
    requestTimeoutMs: 600_000,
    readiness,
    metrics,
    endpoints: [
      {
        method: 'GET',
        path: '/api/slow',
        run: () => {
          asked.resolve();
          return new Promise(() => {});
        },
      },
    ],
  });
  return (await server.listen()).port;
}

const ready = async () => ({ ready: true, reasons: [] });
const probe = async (port: number, path = '/livez') =>
  (await exchangeRaw(port, `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`)).status;

/** Opens connections without a token, and sends `bytes` on each. */
async function flood(
  port: number,
  count: number,
  bytes: string,
  localAddress = '127.0.0.1',
): Promise<Socket[]> {
  const sockets = Array.from({ length: count }, () => {
    const socket = connect({ port, host: '127.0.0.1', localAddress });
    socket.on('error', () => {});
    if (bytes !== '') socket.write(bytes);
    return socket;
  });
  crowd.push(...sockets);
  await Promise.all(sockets.map((socket) => new Promise((resolve) => socket.once('connect', resolve))));
  return sockets;
}

describe('beside many connections', () => {
  it.each([
    ['say nothing', ''],
    ['never finish a head', 'GET /livez HTTP/1.1\r\nHo'],
    ['announce a body', 'POST /api/slow HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n'],
    ['do not read the answers', 'GET /console HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(50)],
    ['wait for an answer', 'GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n'],
  ])('a probe is answered while 600 connections %s', async (what, bytes) => {
    let asked = 0;
    const port = await start(() => {
      asked += 1;
      return what === 'wait for an answer' && asked <= 600 ? new Promise(() => {}) : ready();
    });
    for (let sent = 0; sent < 600; sent += 200) {
      for (const socket of await flood(port, 200, bytes)) socket.pause();
      // The probe waits behind the connections in the kernel's queue. If that is full, the client tries again after a
      // second.
      expect(await probe(port)).toBe(200);
    }
    for (let i = 0; i < 10; i++) expect(await probe(port)).toBe(200);
  });

  it('64 of 300 silent connections stay open', async () => {
    const port = await start(ready);
    const sockets = await flood(port, 300, '');
    const isOpen = (socket: Socket) => !socket.destroyed && !socket.readableEnded;
    for (const socket of sockets) socket.resume();
    const delayed = await eventually('closing of the surplus connections', async () => {
      const count = sockets.filter(isOpen).length;
      return count <= 64 ? count : undefined;
    });
    expect(delayed).toBe(64);
  });

  it('300 more connections do not close that of an operator who waits', async () => {
    const port = await start(ready);
    const [operator] = await flood(
      port,
      1,
      `GET /api/slow HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\n\r\n`,
    );
    await asked.promise;
    await flood(port, 300, '');
    expect(await probe(port)).toBe(200);
    expect(operator?.destroyed).toBe(false);
  });

  it('300 more connections do not close that of another address', async () => {
    const port = await start(ready);
    const [idle] = await flood(port, 1, '', '127.0.0.2');
    await flood(port, 300, '');
    expect(await probe(port)).toBe(200);
    expect([idle?.destroyed, idle?.readableEnded]).toEqual([false, false]);
  });
});

it('a tick of the event loop serves one request, and a connection has one at a time', async () => {
  let [pages, together] = [0, 0];
  let isTickUsed = false;
  const port = await start(ready, async () => {
    pages += 1;
    if (isTickUsed) together += 1;
    isTickUsed = true;
    setImmediate(() => {
      isTickUsed = false;
    });
    return 'metrics\n';
  });
  const ask = `GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\n\r\n`;
  const single = await flood(port, 30, ask);
  await Promise.all(single.map((socket) => new Promise((resolve) => socket.once('data', resolve))));
  expect([pages, together]).toEqual([30, 0]);

  const pipelining = await flood(port, 30, ask.repeat(20));
  await Promise.all(
    pipelining.map((socket) => socket.closed || new Promise((end) => socket.resume().once('close', end))),
  );
  // The first request may be served before the second one ends the connection.
  expect(pages).toBeLessThanOrEqual(60);
  expect(together).toBe(0);
});

it.each(['Host: a', 'No-Host: a'])(
  'of 2,000 requests with %s that came at once, Node reads one',
  async (field) => {
    const port = await start(ready);
    let begun = 0;
    const note = () => {
      begun += 1;
    };
    subscribe('http.server.request.start', note);
    onTestFinished(() => void unsubscribe('http.server.request.start', note));
    const [socket] = await flood(port, 1, `GET / HTTP/1.1\r\n${field}\r\n\r\n`.repeat(2_000));
    await new Promise((end) => socket?.resume().once('close', end));
    // The next one may come in the next read.
    expect(begun).toBeLessThan(10);
  },
);
