import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { PassThrough } from 'node:stream';
import { connect as connectTls } from 'node:tls';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { buildRejections } from '../../../src/http/rejection.ts';
import { RejectionBodies } from '../../../src/http/rejection-bodies.ts';
import { createRejectMalformed } from '../../../src/server/client-error.ts';
import { ConnectionPlaces } from '../../../src/server/in-flight.ts';
import { Listener, type ListenerOptions } from '../../../src/server/listener.ts';
import { exchangeRaw, openRawConnection } from '../../harness/raw-client.ts';
import { testCertificate, testKey } from '../../harness/tls-fixture.ts';

let listener: Listener;
afterEach(() => listener.drain({ graceMs: 0, withinMs: 0 }));

/** Starts a listener that answers with the target. `heard` has a line for each request or refusal, in order. */
async function start(more: Partial<ListenerOptions> = {}) {
  const heard: string[] = [];
  listener = new Listener({
    ...{ host: '127.0.0.1', port: 0, keepAliveTimeoutMs: 61_000, requestHeadersBytes: 16_384 },
    rejectMalformed: (why, socket, head) => {
      heard.push(`${why} ${head?.reason}`);
      socket.end('HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n');
    },
    handle: (incoming: IncomingMessage, response: ServerResponse) => {
      heard.push(`${incoming.method} ${incoming.url}`);
      response.end(incoming.url);
      return undefined;
    },
    ...more,
  });
  return { heard, port: (await listener.listen()).port };
}

it('every time-out and size of node’s server is ours', async () => {
  await start();
  expect(listener.server).toMatchObject({
    headersTimeout: 10_000,
    requestTimeout: 300_000,
    keepAliveTimeout: 61_000,
    maxHeadersCount: 257,
    maxRequestsPerSocket: 0,
    timeout: 0,
  });
});

describe('what node would answer by itself', () => {
  it.each([
    ['Expect: 100-continue', 'Content-Length: 2\r\n', '{}'],
    ['Expect: something-else', '', ''],
  ])('%s is a request like any other', async (field, more, body) => {
    const { heard, port } = await start();
    const response = await exchangeRaw(port, `POST /a HTTP/1.1\r\nHost: s\r\n${field}\r\n${more}\r\n${body}`);
    expect([response.status, heard]).toEqual([200, ['POST /a']]);
  });

  it('a request without Host is handed to us', async () => {
    const { heard, port } = await start();
    await exchangeRaw(port, 'GET /a HTTP/1.1\r\n\r\n');
    expect(heard).toEqual(['GET /a']);
  });

  it.each([
    ['CONNECT s:443 HTTP/1.1\r\nHost: s\r\n\r\n', 'method-not-allowed tunnel'],
    ['nonsense\r\n\r\n', 'method-not-allowed invalid-method'],
    [`GET / HTTP/1.1\r\nHost: s\r\nA: ${'a'.repeat(16_384)}\r\n\r\n`, 'fields-too-large header-overflow'],
  ])('%j is refused by us', async (bytes, refusal) => {
    const { heard, port } = await start();
    await exchangeRaw(port, bytes);
    expect(heard).toEqual([expect.stringContaining(refusal)]);
  });
});

describe('a WebSocket handshake', () => {
  const upgrade = 'Host: s\r\nConnection: Upgrade\r\nUpgrade: ';
  const handshake = `GET /ws HTTP/1.1\r\n${upgrade}WebSocket\r\n`;

  it.each([
    ['one', `${handshake}\r\n`, ['upgrade /ws']],
    ['with a length of 0', `${handshake}Content-Length: 0\r\n\r\n`, ['upgrade /ws']],
    ['with a body', `${handshake}Content-Length: 1\r\n\r\nx`, ['GET /ws']],
    ['with a chunked body', `${handshake}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`, ['GET /ws']],
    ['of another method', `POST /ws HTTP/1.1\r\n${upgrade}websocket\r\n\r\n`, ['POST /ws']],
    ['of HTTP/1.0', `GET /ws HTTP/1.0\r\n${upgrade}websocket\r\n\r\n`, ['GET /ws']],
    ['to something else', `GET /ws HTTP/1.1\r\n${upgrade}h2c\r\n\r\n`, ['GET /ws']],
  ])('%s', async (_, bytes, met) => {
    const { heard, port } = await start({
      handleUpgrade: ({ url }, socket) => {
        heard.push(`upgrade ${url}`);
        socket.end('HTTP/1.1 101 Switching Protocols\r\n\r\n');
      },
    });
    const client = await openRawConnection(port);
    await client.write(bytes);
    const answer = String(await client.readAll());
    expect(heard).toEqual(met);
    // Whoever asked for an upgrade that is not made sees the connection end after the answer.
    expect(answer).toMatch(met[0] === 'upgrade /ws' ? /^HTTP\/1\.1 101 / : /\r\nConnection: close\r\n/i);
  });

  it('is a request where they are switched off, and its connection is not used again', async () => {
    const { heard, port } = await start();
    const client = await openRawConnection(port);
    await client.write(`${handshake}\r\n`);
    expect(String(await client.readAll())).toMatch(/\r\nConnection: close\r\n/i);
    expect(heard).toEqual(['GET /ws']);
  });

  it('behind a request that is not answered yet is refused in its turn', async () => {
    const held = Promise.withResolvers<ServerResponse>();
    const { heard, port } = await start({
      handle: (_incoming, response) => {
        held.resolve(response);
        return undefined;
      },
      handleUpgrade: (_incoming, socket) => {
        heard.push('upgrade');
        socket.destroy();
      },
    });
    const client = await openRawConnection(port);
    await client.write(`GET /a HTTP/1.1\r\nHost: s\r\n\r\n${handshake}\r\n`);
    (await held.promise).end('a');
    expect((await client.readResponse()).status).toBe(200);
    await client.readAll();
    expect(heard).toEqual(['bad-request pipelined-upgrade']);
  });
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

describe('octets that are no request, as they are answered and recorded', () => {
  const records: object[] = [];
  const rejectMalformed = createRejectMalformed({
    rejections: new RejectionBodies(buildRejections()),
    redactPath: (segments) => `/${segments.join('/')}`,
    record: ({ decision, status, rejection, reason, method, path, clientAddress }) =>
      void records.push({ decision, status, rejection, reason, method, path, clientAddress }),
  });
  const refused = { decision: 'refused', clientAddress: '127.0.0.1' };

  it.each([
    [
      'GET /a HTTP/9.9\r\n\r\n',
      {
        status: 505,
        rejection: 'http-version-unsupported',
        reason: 'invalid-version',
        method: 'GET',
        path: '/a',
      },
    ],
    [
      'CONNECT s:1 HTTP/1.1\r\nHost: s\r\n\r\n',
      { status: 405, rejection: 'method-not-allowed', reason: 'tunnel', method: 'other', path: '/' },
    ],
  ])('%j', async (bytes, recorded) => {
    records.length = 0;
    const { port } = await start({ rejectMalformed });
    const response = await exchangeRaw(port, bytes);
    expect([response.status, response.field('connection')]).toEqual([recorded.status, 'close']);
    expect(response.field('x-request-id')).toMatch(/.{8}/);
    expect(response.body.length).toBeGreaterThan(0);
    expect(records).toEqual([{ ...refused, ...recorded }]);
  });

  it('a malformed HEAD gets an answer without a body', async () => {
    const { port } = await start({ rejectMalformed });
    const client = await openRawConnection(port);
    await client.write('HEAD /a HTTP/1.1\r\nHost : s\r\n\r\n');
    expect(String(await client.readAll())).toMatch(/^HTTP\/1\.1 400 [\s\S]*\r\n\r\n$/);
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

it('over TLS, too, a request under way keeps its place, and an idle connection makes room', async () => {
  const places = new ConnectionPlaces({ limit: 1, sharePercent: 100, isTrusted: () => false });
  const held = Promise.withResolvers<ServerResponse>();
  const { port } = await start({
    places,
    tls: { cert: testCertificate, key: testKey },
    handle: (_incoming, response) => {
      held.resolve(response);
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
  const response = await held.promise;
  await open();
  expect(places.counts).toEqual({ evicted: 0, refused: 1, refusedOfPeer: 0 });
  const answered = once(busy, 'data');
  response.end('whole');
  expect(String((await answered)[0])).toContain('200 OK');
  await expect
    .poll(async () => {
      await open();
      return places.counts.evicted;
    })
    .toBeGreaterThan(0);
});

describe('a drain', () => {
  const get = 'GET /a HTTP/1.1\r\nHost: s\r\n\r\n';

  it('takes requests, also on new connections, as long as its grace lasts; each answer is the last one', async () => {
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

  it('without a grace takes no more connections', async () => {
    const { port } = await start();
    await listener.drain({ graceMs: 0, withinMs: 60_000 });
    await expect(openRawConnection(port)).rejects.toThrow();
  });

  it('ends connections that have sent nothing, and those between two requests, at once', async () => {
    const { port } = await start();
    const accepted = once(listener.server, 'connection');
    const silent = await openRawConnection(port);
    await accepted;
    const idle = await openRawConnection(port);
    await idle.write(get);
    await idle.readResponse();
    // An hour: what ends the drain is not its deadline.
    await listener.drain({ graceMs: 0, withinMs: 3_600_000 });
    for (const client of [silent, idle]) expect(String(await client.readAll())).toBe('');
  });

  it('ends a connection after the answer that was under way', async () => {
    const held = Promise.withResolvers<ServerResponse>();
    const { port } = await start({
      handle: (_incoming, response) => {
        held.resolve(response);
        return undefined;
      },
    });
    const client = await openRawConnection(port);
    await client.write(get);
    const response = await held.promise;
    const drained = listener.drain({ graceMs: 0, withinMs: 3_600_000 });
    response.end('whole');
    expect((await client.readResponse()).body.toString()).toBe('whole');
    await drained;
  });
});
