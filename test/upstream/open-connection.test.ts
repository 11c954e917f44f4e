import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { hearFaults } from '../../src/lib/faults.ts';
import {
  type ConnectionFault,
  openConnection,
  PooledConnection,
  UpstreamTls,
  verification,
} from '../../src/upstream/connection.ts';
import { testCertificate } from '../harness/tls-fixture.ts';

class Connection extends PooledConnection {
  heard = '';
  breaks = false;
  override read(length: number): boolean {
    if (this.breaks) throw new Error('a mistake');
    this.heard += this.piece.toString('latin1', 0, length);
    return true;
  }
}

const faults: unknown[] = [];
const ends: (() => void)[] = [];
beforeEach(() => {
  faults.length = 0;
  hearFaults((fault) => faults.push(fault));
});
afterEach(() => {
  hearFaults(() => {});
  for (const end of ends.splice(0)) end();
});

/** An upstream that does this with each socket. */
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

interface Wanted {
  readonly scheme?: 'http' | 'https';
  readonly connectTimeoutMs?: number;
  readonly adopt?: (socket: Socket) => Connection;
  readonly opened?: (connection: Connection) => void;
}

function open(port: number, { scheme = 'http', connectTimeoutMs = 60_000, ...wanted }: Wanted = {}) {
  const seen: (string | ConnectionFault['kind'])[] = [];
  const settled = Promise.withResolvers<Connection | undefined>();
  const adopted: Socket[] = [];
  const first = Buffer.alloc(100);
  const giveUp = openConnection(
    {
      ...{
        upstream: { scheme, hostname: '127.0.0.1', port },
        connectTimeoutMs,
        tls: { ca: testCertificate },
      },
      ...{ connections: 1, queueLimit: 1, queueTimeoutMs: 1 },
    },
    first,
    (socket) => {
      adopted.push(socket);
      return wanted.adopt?.(socket) ?? new Connection(socket, first);
    },
    (connection) => {
      ends.push(() => connection.socket.destroy());
      seen.push('opened');
      settled.resolve(connection);
      wanted.opened?.(connection);
    },
    ({ kind }) => {
      seen.push(kind);
      settled.resolve(undefined);
    },
  );
  return { seen, adopted, giveUp, settled: settled.promise };
}

async function opened(opening: ReturnType<typeof open>): Promise<Connection> {
  const connection = await opening.settled;
  if (connection === undefined) throw new Error(opening.seen.join());
  return connection;
}

test('a connection that was made in time outlives the time in which it had to be made', async () => {
  const port = await serve((socket) => void socket.on('data', (chunk) => socket.write(chunk)));
  let opening: ReturnType<typeof open>;
  // As often as it takes on a machine that stands still for longer than that.
  do opening = open(port, { connectTimeoutMs: 50 });
  while ((await opening.settled) === undefined);
  const { socket } = await opened(opening);
  await sleep(100);
  socket.write('hello');
  await expect.poll(async () => (await opened(opening)).heard).toBe('hello');
  // From then on its end is its owner's to hear.
  socket.destroy();
  await once(socket, 'close');
  expect([opening.seen, socket.listenerCount('error'), socket.listenerCount('close')]).toEqual([
    ...[['opened'], 0, 0],
  ]);
});

test('a connection that is closed while it is made has failed, once', async () => {
  const opening = open(await serve((socket) => void socket.destroy()), { scheme: 'https' });
  expect(await opening.settled).toBeUndefined();
  await sleep(10);
  expect([opening.seen, opening.adopted]).toEqual([['unreachable'], []]);
});

test('who gives up hears of it at once, and of nothing else', async () => {
  const accepted: Socket[] = [];
  const opening = open(await serve((socket) => void accepted.push(socket)));
  opening.giveUp();
  expect(opening.seen).toEqual(['unreachable']);
  await sleep(20);
  await expect.poll(() => accepted.every(({ destroyed }) => destroyed)).toBe(true);
  expect([opening.seen, opening.adopted]).toEqual([['unreachable'], []]);
});

test('an exception while a connection is handed over ends it, and its waiter is told unless he has it already', async () => {
  const port = await serve();
  const mistake = () => {
    throw new Error('a mistake');
  };
  const refused = open(port, { adopt: mistake });
  expect(await refused.settled).toBeUndefined();
  expect([refused.seen, refused.adopted[0]?.destroyed, faults.length]).toEqual([['unreachable'], true, 1]);
  const given = open(port, { opened: mistake });
  const { socket } = await opened(given);
  await expect.poll(() => faults.length).toBe(2);
  expect([given.seen, socket.destroyed]).toEqual([['opened'], true]);
});

test('an exception while octets are read ends the connection, and is reported', async () => {
  const connection = await opened(
    open(await serve((socket) => void socket.on('data', () => socket.write('a')))),
  );
  connection.breaks = true;
  connection.socket.write('?');
  await expect.poll(() => [connection.socket.destroyed, faults.length]).toEqual([true, 1]);
});

test.each([
  ['shop.internal', 'shop.internal'],
  ['192.0.2.1', ''],
  ['2001:db8::a', ''],
])('the certificate of %s is held against the server name %j', (hostname, servername) => {
  const upstream = { scheme: 'https', hostname, port: 443 } as const;
  expect(verification({ upstream, tls: undefined })).toEqual({ rejectUnauthorized: true, servername });
  const named = new UpstreamTls('shop.example');
  expect(verification({ upstream, tls: named })).toMatchObject({ servername: 'shop.example' });
  expect(verification({ upstream, tls: new UpstreamTls(undefined) })).toMatchObject({ servername });
});
