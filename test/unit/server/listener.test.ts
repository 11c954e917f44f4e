import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { PassThrough } from 'node:stream';
import { setImmediate as nextTick } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { buildRejections } from '../../../src/http/rejection.ts';
import { RejectionBodies } from '../../../src/http/rejection-bodies.ts';
import { createRejectMalformed } from '../../../src/server/client-error.ts';
import { ConnectionSlots } from '../../../src/server/in-flight.ts';
import { Listener, type ListenerOptions } from '../../../src/server/listener.ts';
import { freePort } from '../../harness/free-port.ts';
import { exchangeRaw, openRawConnection } from '../../harness/raw-client.ts';
import { testPair } from '../../harness/tls-fixture.ts';

let listener: Listener;
afterEach(() => listener.drain({ graceMs: 0, withinMs: 0 }));

/** Starts a listener that answers with the request target. */
async function start(more: Partial<ListenerOptions> = {}) {
  listener = new Listener({
    ...{ host: '127.0.0.1', port: 0, keepAliveTimeoutMs: 61_000, requestHeadersBytes: 16_384 },
    rejectMalformed: (_why, socket) => socket.destroy(),
    handle: (incoming: IncomingMessage, response: ServerResponse) => {
      response.end(incoming.url);
      return undefined;
    },
    ...more,
  });
  return { port: (await listener.listen()).port };
}

it('without WebSockets, the connection of a handshake ends after its answer', async () => {
  const { port } = await start();
  const client = await openRawConnection(port);
  await client.write('GET /ws HTTP/1.1\r\nHost: s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
  expect(String(await client.readAll())).toMatch(/\r\nConnection: close\r\n[\s\S]*\/ws$/i);
});

it('a taken port is an error', async () => {
  const { port } = await start();
  const second = new Listener({
    ...{ host: '127.0.0.1', port, keepAliveTimeoutMs: 1, requestHeadersBytes: 16_384 },
    rejectMalformed: () => {},
    handle: () => undefined,
  });
  await expect(second.listen()).rejects.toMatchObject({ code: 'EADDRINUSE' });
});

it('EMFILE while accepting does not stop the listener', async () => {
  const { port } = await start();
  listener.server.emit('error', Object.assign(new Error(), { code: 'EMFILE' }));
  expect((await exchangeRaw(port, 'GET /a HTTP/1.1\r\nHost: s\r\n\r\n')).status).toBe(200);
});

describe('octets that are no request', () => {
  const records: object[] = [];
  const rejectMalformed = createRejectMalformed({
    rejections: new RejectionBodies(buildRejections()),
    redactPath: (segments) => `/${segments.join('/')}`,
    record: (one) => void records.push(one),
  });

  it('a malformed HEAD gets an answer without a body', async () => {
    const { port } = await start({ rejectMalformed });
    const client = await openRawConnection(port);
    await client.write('HEAD /a HTTP/1.1\r\nHost : s\r\n\r\n');
    expect(String(await client.readAll())).toMatch(/^HTTP\/1\.1 400 [\s\S]*\r\n\r\n$/);
  });

  it.each([
    ['malformed heads', 'GET /a HTTP/1.1\r\nHost : s\r\n\r\n'],
    ['tunnels', 'CONNECT s:1 HTTP/1.1\r\nHost: s\r\n\r\n'],
  ])('of 200 %s that arrive at once, 64 are refused in a tick', async (_, head) => {
    let refused = 0;
    const { port } = await start({
      rejectMalformed: (...args) => {
        refused += 1;
        rejectMalformed(...args);
      },
    });
    const clients = await Promise.all(Array.from({ length: 200 }, () => openRawConnection(port)));
    // Now all are accepted.
    for (const client of clients) {
      await client.write('GET /a HTTP/1.1\r\nHost: s\r\n\r\n');
      await client.readResponse();
    }
    const sent = clients.map((client) => client.write(head));
    // All octets arrive while the event loop stands still.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
    let [before, most] = [0, 0];
    while (refused < clients.length) {
      await nextTick();
      most = Math.max(most, refused - before);
      before = refused;
    }
    expect(most).toBe(64);
    await Promise.all(sent);
    for (const client of clients) expect(String(await client.readAll())).toMatch(/^HTTP\/1\.1 40[05] /);
  });

  it('a connection that sent no byte is not recorded', async () => {
    records.length = 0;
    await start();
    const socket = new PassThrough();
    rejectMalformed('request-timeout', Object.assign(socket, { bytesRead: 0 }));
    expect(String(socket.read())).toMatch(/^HTTP\/1\.1 408 /);
    expect(records).toEqual([]);
    const other = new PassThrough();
    rejectMalformed('request-timeout', Object.assign(other, { bytesRead: 1 }));
    expect(records).toHaveLength(1);
  });
});

it('over TLS, 64 clients of one network may be in a handshake, and those of another are served', async () => {
  const slots = new ConnectionSlots({ limit: 1_000, sharePercent: 50, isTrusted: () => false });
  const { port } = await start({ slots, tls: testPair });
  const silent: Socket[] = [];
  onTestFinished(() => silent.forEach((socket) => void socket.destroy()));
  while (silent.length < 66) {
    const accepted = once(listener.server, 'connection');
    silent.push(
      connect(port, '127.0.0.1')
        .resume()
        .on('error', () => {}),
    );
    await accepted;
  }
  expect(slots.counts.refusedOfPeer).toBe(2);
  const ask = (localAddress: string) =>
    new Promise<string>((resolve) => {
      const socket = connect({ port, host: '127.0.0.1', localAddress });
      const client = connectTls({ socket, rejectUnauthorized: false });
      onTestFinished(() => void client.destroy());
      client.on('error', () => {}).on('close', () => resolve('closed'));
      client.once('data', (octets) => resolve(String(octets)));
      client.write('GET /a HTTP/1.1\r\nHost: s\r\n\r\n');
    });
  expect(await ask('127.0.0.2')).toContain('200 OK');
  expect(await ask('127.0.0.1')).toBe('closed');
  // Handshakes no longer count once they or their connections have ended.
  for (let i = 0; i < 3; i += 1) silent[i]?.destroy();
  await expect.poll(() => slots.open).toBe(62);
  for (let i = 0; i < 6; i += 1) expect(await ask('127.0.0.1')).toContain('200 OK');
});

it('over TLS, a busy connection keeps its slot, and an idle one is closed for a new one', async () => {
  const slots = new ConnectionSlots({ limit: 1, sharePercent: 100, isTrusted: () => false });
  const delayed = Promise.withResolvers<ServerResponse>();
  const { port } = await start({
    slots,
    tls: testPair,
    handle: (_incoming, response) => {
      delayed.resolve(response);
      return undefined;
    },
  });
  const open = async () => {
    const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false });
    socket.on('error', () => {});
    onTestFinished(() => void socket.destroy());
    await new Promise((resolve) => socket.once('secureConnect', resolve).once('close', resolve));
    return socket;
  };
  const busy = await open();
  busy.write('GET /a HTTP/1.1\r\nHost: s\r\n\r\n');
  const response = await delayed.promise;
  await open();
  expect(slots.counts).toEqual({ evicted: 0, refused: 1, refusedOfPeer: 0 });
  const answered = once(busy, 'data');
  response.end('whole');
  expect(String((await answered)[0])).toContain('200 OK');
  await expect
    .poll(async () => {
      await open();
      return slots.counts.evicted;
    })
    .toBeGreaterThan(0);
});

describe('a drain', () => {
  const get = 'GET /a HTTP/1.1\r\nHost: s\r\n\r\n';

  it('accepts requests during the grace period, also on new connections; each answer closes its connection', async () => {
    const { port } = await start();
    const old = await openRawConnection(port);
    await old.write(get);
    expect((await old.readResponse()).field('connection')).not.toBe('close');
    // `afterEach` ends this drain.
    void listener.drain({ graceMs: 30_000, withinMs: 0 });
    const fresh = await openRawConnection(port);
    for (const client of [old, fresh]) {
      await client.write(get);
      const response = await client.readResponse();
      expect([response.status, response.field('connection')]).toEqual([200, 'close']);
    }
  });

  it('does not wait for a connection that sent half a head', async () => {
    const { port } = await start();
    const accepted = once(listener.server, 'connection') as Promise<[Socket]>;
    const silent = await openRawConnection(port);
    const half = 'GET /open HTTP/1.1\r\nHo';
    await silent.write(half);
    const [socket] = await accepted;
    await expect.poll(() => socket.bytesRead).toBe(half.length);
    await listener.drain({ graceMs: 0, withinMs: 3_600_000 });
    silent.close();
  });

  it('cuts a request at the deadline, and sets `cut.isDue` before', async () => {
    const cut = { isDue: false };
    const { promise: noted, resolve } = Promise.withResolvers<boolean>();
    const { port } = await start({
      handle: (_incoming, response) => {
        response.write('data: 1\n\n');
        response.on('close', () => resolve(cut.isDue));
        return undefined;
      },
    });
    const client = await openRawConnection(port);
    const asked = once(listener.server, 'request');
    await client.write(get);
    await asked;
    await listener.drain({ graceMs: 0, withinMs: 100, cut });
    expect(await noted).toBe(true);
    client.close();
  });

  it('does not cut an answer that its client is still reading', async () => {
    // More than the kernel buffers for a client that does not read.
    const body = Buffer.alloc(32 * 1024 * 1024, 'x');
    const answered = Promise.withResolvers<void>();
    const { port } = await start({
      handle: (_incoming, response) => {
        response.end(body);
        answered.resolve();
        return undefined;
      },
    });
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
});

it('a client that uses one port of its own for two listeners has a slot for each connection', async () => {
  const slots = new ConnectionSlots({ limit: 2, sharePercent: 100, isTrusted: () => false });
  const delayed = Promise.withResolvers<ServerResponse>();
  const handle = (_incoming: IncomingMessage, response: ServerResponse) => {
    delayed.resolve(response);
    return undefined;
  };
  const { port } = await start({ slots, handle, tls: testPair });
  const second = new Listener({
    ...{ host: '127.0.0.1', port: 0, keepAliveTimeoutMs: 61_000, requestHeadersBytes: 16_384 },
    ...{ rejectMalformed: () => {}, handle, slots },
  });
  onTestFinished(() => second.drain({ graceMs: 0, withinMs: 0 }));
  const otherPort = (await second.listen()).port;
  const localPort = await freePort();
  const open = async (to: number, server: Listener['server'], from: { localPort?: number }) => {
    const accepted = once(server, 'connection');
    const socket = connect({ port: to, host: '127.0.0.1', ...from });
    socket.on('error', () => {});
    onTestFinished(() => void socket.destroy());
    await accepted;
    return socket;
  };
  const raw = await open(port, listener.server, { localPort });
  await open(otherPort, second.server, { localPort });
  const busy = connectTls({ socket: raw, rejectUnauthorized: false });
  busy.write('GET /a HTTP/1.1\r\nHost: s\r\n\r\n');
  const response = await delayed.promise;
  const answered = Promise.race([once(busy, 'data'), once(busy, 'close')]);
  await open(otherPort, second.server, {});
  expect(slots.counts).toEqual({ evicted: 1, refused: 0, refusedOfPeer: 0 });
  response.end('whole');
  expect(String((await answered)[0])).toContain('200 OK');
});
