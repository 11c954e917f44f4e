import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import type { CanonicalRequest } from '../../src/http/canonical-request.ts';
import { buildRejections } from '../../src/http/rejection.ts';
import { RejectionBodies } from '../../src/http/rejection-bodies.ts';
import { renderRejection } from '../../src/http/write-response.ts';
import { hearFaults } from '../../src/lib/faults.ts';
import { endWithAnswer } from '../../src/server/client-error.ts';
import { createWebSocketForwarder, type WebSocketForwarder } from '../../src/upstream/websocket.ts';
import type { WebSocketResult } from '../../src/upstream/websocket-handshake.ts';
import { openRawConnection } from '../harness/raw-client.ts';
import {
  answer,
  type RecordingUpstream,
  type Script,
  startRecordingUpstream,
} from '../harness/recording-upstream.ts';

const handshake =
  'GET /ws? HTTP/1.1\r\nHost: s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\nX-Secret: no\r\n\r\n';

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

interface Stage {
  readonly port: number;
  readonly upstream: RecordingUpstream;
  readonly forwarder: WebSocketForwarder;
  readonly results: WebSocketResult[];
}

interface StageOptions {
  readonly limit?: number;
  readonly upstreamPort?: number;
  readonly handshakeTimeoutMs?: number;
  /** To listen to this event of the client's socket throws. */
  readonly breaksOn?: string;
}

async function start(script: Script, more: StageOptions = {}): Promise<Stage> {
  const upstream = await startRecordingUpstream(script);
  ends.push(() => upstream.close());
  const forwarder = createWebSocketForwarder({
    upstream: { scheme: 'http', hostname: '127.0.0.1', port: more.upstreamPort ?? upstream.port },
    connectTimeoutMs: 30_000,
    handshakeTimeoutMs: more.handshakeTimeoutMs ?? 30_000,
    limit: more.limit ?? 10,
  });
  const rejections = new RejectionBodies(buildRejections());
  const results: WebSocketResult[] = [];
  const server = createServer();
  server.on('upgrade', async (incoming, socket: Socket, head) => {
    // What a canonical request keeps of a handshake.
    const fields = [
      'Host',
      's',
      'Sec-WebSocket-Key',
      incoming.headers['sec-websocket-key'] ?? '',
      'X-Kept',
      '1',
    ];
    const request = { method: 'GET', path: '/ws', query: '?', fields } as unknown as CanonicalRequest;
    if (more.breaksOn !== undefined) breakListening(socket, more.breaksOn);
    results.push(
      await forwarder.forward(request, socket, head, (rejection) =>
        endWithAnswer(socket, renderRejection(rejection, rejections)),
      ),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  ends.push(() => {
    forwarder.close();
    server.close();
    server.closeAllConnections();
  });
  return { port: (server.address() as AddressInfo).port, upstream, forwarder, results };
}

function breakListening(socket: Socket, broken: string): void {
  const { addListener } = socket;
  const on = (event: string, listener: () => void) => {
    if (event === broken) throw new Error('a bug');
    return addListener.call(socket, event, listener);
  };
  // Node puts back its own behind the upgrade.
  Object.defineProperty(socket, 'on', { get: () => on, set() {} });
}

const accepted =
  'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
  'Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nKeep-Alive: timeout=5\r\nX-Debug: 1\r\n\r\n';

it('joins both sides, and sends a handshake of its own making', async () => {
  const { port, upstream, forwarder, results } = await start(() => accepted);
  const client = await openRawConnection(port);
  await client.write(`${handshake}early`);
  const response = await client.readResponse();
  expect([response.status, response.field('sec-websocket-accept')]).toEqual([
    101,
    's3pPLMBiTxaQ9kYGzzhZRbK+xOo=',
  ]);
  expect([response.field('x-debug'), response.field('keep-alive')]).toEqual([undefined, undefined]);
  const [connection] = upstream.connections;
  await connection?.waitFor('early');
  connection?.socket.write('late');
  while (!client.pending().includes('late')) await once(client.socket, 'data');
  expect(upstream.requestLines[0]).toBe('GET /ws? HTTP/1.1');
  expect(upstream.bytes()).toMatch(/\r\nconnection: Upgrade\r\nupgrade: websocket\r\n/i);
  expect(upstream.bytes()).not.toContain('X-Secret');
  expect([results[0]?.status, forwarder.open]).toEqual([101, 1]);
  client.close();
  await connection?.closed;
});

it.each([
  [
    'declines',
    answer('no', 'Keep-Alive: timeout=5\r\nProxy-Authenticate: x\r\nETag: "1"\r\n', '403 Forbidden'),
    403,
  ],
  ['asks for another version', answer('', 'Sec-WebSocket-Version: 13\r\n', '426 Upgrade Required'), 426],
])('an upstream that %s is relayed, and the connection ends', async (_how, bytes, status) => {
  const { port, results } = await start(() => bytes);
  const client = await openRawConnection(port);
  await client.write(handshake);
  const response = await client.readResponse();
  const kept = ['connection', 'proxy-authenticate', 'etag'].map((name) => response.field(name));
  expect([response.status, ...kept]).toEqual([status, 'close', undefined, undefined]);
  await client.readAll();
  expect(results).toMatchObject([{ status, rejection: undefined }]);
});

it.each([
  ['204 No Content', ''],
  ['304 Not Modified', ''],
  ['304 Not Modified', 'Content-Length: 5\r\n'],
])('a handshake that is answered %s %j ends with the head: no chunk follows', async (status, fields) => {
  const { port } = await start(() => `HTTP/1.1 ${status}\r\n${fields}\r\n`);
  const client = await openRawConnection(port);
  await client.write(handshake);
  const received = await client.readAll();
  const head = `HTTP/1.1 ${status}\r\n${fields.toLowerCase()}connection: close\r\n\r\n`;
  expect(received.toString()).toBe(head);
});

it.each([
  ['an upgrade', accepted.replace('Connection: Upgrade', 'Connection: Upgrade, X-Hop'), 101],
  ['a refusal', answer('no', 'Connection: X-Hop\r\n', '403 Forbidden'), 403],
])(
  '%s has the fields that any response has: no hop-by-hop ones, and octets as they are',
  async (_, bytes, status) => {
    const more = 'X-Hop: 1\r\nTE: x\r\nX-Latin: caf\xe9\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n\r\n';
    const { port } = await start(() => Buffer.from(bytes.replace('\r\n\r\n', `\r\n${more}`), 'latin1'));
    const client = await openRawConnection(port);
    let received = Buffer.alloc(0);
    client.socket.on('data', (piece: Buffer) => {
      received = Buffer.concat([received, piece]);
    });
    await client.write(handshake);
    const response = await client.readResponse();
    expect([response.status, response.field('x-hop'), response.field('te')]).toEqual([
      status,
      undefined,
      undefined,
    ]);
    expect(received.toString('latin1')).toMatch(/\r\nx-latin: caf\xe9\r\n/i);
    expect(received.toString('latin1').match(/set-cookie: [ab]=[12]/gi)).toHaveLength(2);
    client.close();
  },
);

it.each([
  ['is not there', { upstreamPort: 1 }, undefined, 502],
  ['says nothing', { handshakeTimeoutMs: 300 }, undefined, 504],
  ['says garbage', {}, 'SSH-2.0\r\n', 502],
])('an upstream that %s is a refusal', async (_what, options, bytes, status) => {
  const { port, forwarder, results } = await start(() => bytes, options);
  const client = await openRawConnection(port);
  await client.write(handshake);
  expect((await client.readResponse()).status).toBe(status);
  await client.readAll();
  expect(results).toMatchObject([{ status: 0 }]);
  while (forwarder.open > 0) await new Promise((resolve) => setTimeout(resolve, 2));
});

it('an upgrade to something else ends both sides', async () => {
  const { port, upstream } = await start(() => accepted.replace('Upgrade: websocket', 'Upgrade: h2c'));
  const client = await openRawConnection(port);
  await client.write(handshake);
  expect(await client.readAll()).toHaveLength(0);
  await upstream.connections[0]?.closed;
});

it('one more than the limit is 503, and the upstream does not see it', async () => {
  const { port, upstream } = await start(() => accepted, { limit: 1 });
  const first = await openRawConnection(port);
  await first.write(handshake);
  expect((await first.readResponse()).status).toBe(101);
  const second = await openRawConnection(port);
  await second.write(handshake);
  expect((await second.readResponse()).status).toBe(503);
  expect(upstream.connections).toHaveLength(1);
  first.close();
  second.close();
});

it('a client that leaves during the handshake leaves nothing behind, once the handshake is due', async () => {
  const { port, upstream, forwarder } = await start(() => undefined, { handshakeTimeoutMs: 1000 });
  const client = await openRawConnection(port);
  await client.write(handshake);
  while (upstream.requestLines.length === 0) await new Promise((resolve) => setTimeout(resolve, 2));
  client.close();
  await upstream.connections[0]?.closed;
  while (forwarder.open > 0) await new Promise((resolve) => setTimeout(resolve, 2));
});

it.each([
  ['joins both sides', accepted, 'pause'],
  ['declines', answer('no', '', '403 Forbidden'), 'drain'],
])('what throws while the upstream %s ends this handshake alone', async (_how, bytes, breaksOn) => {
  const faults: unknown[] = [];
  hearFaults((fault) => faults.push(fault));
  ends.push(() => hearFaults(() => {}));
  const { port, forwarder, results } = await start(() => bytes, { breaksOn });
  const client = await openRawConnection(port);
  await client.write(handshake);
  await client.readAll();
  await expect.poll(() => results[0]?.rejection?.rejection).toBe('internal-error');
  expect(faults).toMatchObject([{ message: 'a bug' }]);
  await expect.poll(() => forwarder.open).toBe(0);
});
