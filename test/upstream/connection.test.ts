import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { Connection } from '../../src/upstream/connection.ts';
import type { ClientOptions } from '../../src/upstream/port.ts';
import { UpstreamTls, verification } from '../../src/upstream/upstream-tls.ts';
import { testCertificate } from '../harness/tls-fixture.ts';

const ends: (() => void)[] = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
});

/** Starts an upstream that does this with each socket. */
async function serve(act: (socket: Socket) => void = () => {}): Promise<number> {
  const sockets: Socket[] = [];
  const server = createServer(act);
  server.on('connection', (socket) => sockets.push(socket.on('error', () => {})));
  ends.push(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return (server.address() as AddressInfo).port;
}

function open(
  port: number,
  more: { scheme?: 'https'; connectTimeoutMs?: number; tls?: ClientOptions['tls'] } = {},
) {
  const { scheme = 'http', connectTimeoutMs = 60_000, tls = { ca: testCertificate } } = more;
  const events: string[] = [];
  const options: ClientOptions = {
    upstream: { scheme, hostname: '127.0.0.1', port },
    ...{ connectTimeoutMs, tls, connections: 1, queueLimit: 1, queueTimeoutMs: 1 },
  };
  const connection = new Connection(options, {
    onOpen: () => events.push('open'),
    onEnd: () => events.push('end'),
    onClosed: () => events.push('closed'),
  });
  ends.push(() => connection.socket.destroy());
  return { connection, events };
}

function closed({ socket }: Connection): Promise<void> {
  return new Promise((resolve) => socket.once('close', () => resolve()));
}

test('an open connection outlives the connect time-out', async () => {
  const { connection, events } = open(await serve(), { connectTimeoutMs: 200 });
  await sleep(300);
  expect([events, connection.isTimedOut]).toEqual([['open'], false]);
});

test.each<[string, (socket: Socket) => void, { scheme?: 'https' }, string[]]>([
  ['is closed in the TLS handshake', (socket) => void socket.destroy(), { scheme: 'https' }, ['closed']],
  ['is ended', (socket) => void socket.end(), {}, ['open', 'end', 'closed']],
  ['is reset', (socket) => void socket.resetAndDestroy(), {}, ['open', 'closed']],
  ['gets bytes before a request', (socket) => void socket.write('HTTP/1.1 200 OK'), {}, ['open', 'closed']],
])('a connection that %s', async (_, act, more, expected) => {
  const { connection, events } = open(await serve((socket) => void setImmediate(act, socket)), more);
  await closed(connection);
  expect(events).toEqual(expected);
});

test('a connection whose socket cannot be created is closed with that cause', async () => {
  const { connection, events } = open(1, { scheme: 'https', tls: { cert: 'no certificate' } });
  expect(events).toEqual([]);
  await closed(connection);
  expect([events, connection.cause]).toEqual([['closed'], expect.any(Error)]);
});

test.each([
  ['shop.internal', 'shop.internal'],
  ['192.0.2.1', ''],
  ['2001:db8::a', ''],
])('the certificate of %s is checked against the server name %j', (hostname, servername) => {
  const upstream = { scheme: 'https', hostname, port: 443 } as const;
  expect(verification({ upstream, tls: undefined })).toEqual({ rejectUnauthorized: true, servername });
  const named = new UpstreamTls('shop.example');
  expect(verification({ upstream, tls: named })).toMatchObject({ servername: 'shop.example' });
  expect(verification({ upstream, tls: new UpstreamTls(undefined) })).toMatchObject({ servername });
});
