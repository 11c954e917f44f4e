import { once } from 'node:events';
import { type AddressInfo, connect as connectTcp, createServer } from 'node:net';
import { connect, type TLSSocket } from 'node:tls';
import { expect, it, onTestFinished } from 'vitest';
import { maxHandshakeBytes } from '../../../src/lib/bound-handshake.ts';
import { Listener } from '../../../src/server/listener.ts';
import { nextCertificate, nextKey, nextPair, testPair } from '../../harness/tls-fixture.ts';

/** A certificate in DER with its length, as a handshake contains it. */
const certificateBytes = Buffer.from(nextCertificate.replace(/-----.*-----/g, ''), 'base64').length + 5;
const withChain = (bytes: number) => ({
  cert: nextCertificate.repeat(Math.floor(bytes / certificateBytes)),
  key: nextKey,
});

/** A listener that asks for certificates and echoes the bodies of requests. */
async function listen() {
  const listener = new Listener({
    ...{ host: '127.0.0.1', port: 0, keepAliveTimeoutMs: 60_000, requestHeadersBytes: 16_384 },
    tls: { ...testPair, requestCert: true },
    rejectMalformed: (_, socket) => socket.destroy(),
    handle(incoming, response) {
      incoming.pipe(response);
      return { ended() {} };
    },
  });
  const { port } = await listener.listen();
  onTestFinished(() => listener.drain({ graceMs: 0, withinMs: 0 }));
  return { listener, port };
}

function connectTo(port: number, options: object): TLSSocket {
  const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false, ...options });
  socket.on('error', () => {});
  onTestFinished(() => void socket.destroy());
  return socket;
}

const lengths = [0, 1_000, 300_000];
it.each(lengths.flatMap((length) => ['TLSv1.2', 'TLSv1.3'].map((maxVersion) => [length, maxVersion])))(
  'a request with %i octets right after its handshake by %s, whose chain has 12 KiB, is read',
  async (length, maxVersion) => {
    const { port } = await listen();
    const socket = connectTo(port, { ...withChain(maxHandshakeBytes * 0.75), maxVersion });
    const head = `POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: ${length}\r\n\r\n`;
    socket.write(head + 'x'.repeat(Number(length)));
    let answer = '';
    for await (const chunk of socket) answer += chunk;
    expect(answer).toContain('200 OK');
    expect(answer.match(/x/g)?.length ?? 0).toBe(length);
  },
);

it.each(['TLSv1.2', 'TLSv1.3'])('a handshake by %s whose chain has 24 KiB is cut', async (maxVersion) => {
  const { listener, port } = await listen();
  let begun = 0;
  listener.server.on('secureConnection', () => {
    begun += 1;
  });
  const socket = connectTo(port, { ...withChain(maxHandshakeBytes * 1.5), maxVersion });
  await new Promise((resolve) => socket.once('close', resolve).resume());
  expect(begun).toBe(0);
});

it.each(['TLSv1.2', 'TLSv1.3'])(
  'octets that are no record, after a handshake by %s, end the connection',
  async (maxVersion) => {
    const { port } = await listen();
    const raw = connectTcp(port, '127.0.0.1');
    raw.on('error', () => {});
    const socket = connectTo(port, { socket: raw, maxVersion, ...nextPair });
    socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    await once(socket, 'data');
    raw.write('x'.repeat(100));
    await new Promise((resolve) => raw.once('close', resolve));
  },
);

it('of handshakes that go on in one tick, one is read in each tick', async () => {
  const { listener, port } = await listen();
  const count = 20;
  let tick = 0;
  const beginTick = () => {
    tick += 1;
    next = setImmediate(beginTick);
  };
  let next = setImmediate(beginTick);
  onTestFinished(() => clearImmediate(next));
  const ticks: number[] = [];
  const ended = Promise.withResolvers<void>();
  listener.server.on('secureConnection', () => {
    if (ticks.push(tick) === count) ended.resolve();
  });
  /** Withholds what clients send after their first octets, until all of them have sent more. */
  const unsent: (() => void)[] = [];
  const relay = createServer((client) => {
    const server = connectTcp(port, '127.0.0.1');
    server.on('data', (chunk) => client.write(chunk)).on('close', () => client.destroy());
    client.once('data', (first) => {
      server.write(first);
      client.on('data', (chunk) => {
        unsent.push(() => server.write(chunk));
        if (unsent.length === count) for (const send of unsent) send();
      });
    });
    client.on('error', () => server.destroy()).on('close', () => server.destroy());
  });
  relay.listen(0, '127.0.0.1');
  await once(relay, 'listening');
  onTestFinished(() => void relay.close());
  for (let i = 0; i < count; i += 1) {
    connectTo((relay.address() as AddressInfo).port, nextPair);
  }
  await ended.promise;
  const most = Math.max(...ticks.map((one) => ticks.filter((other) => other === one).length));
  // The tick that this test counts may be off by one, so two handshakes may seem to share a tick.
  expect(most).toBeLessThanOrEqual(2);
});
