import type { Socket } from 'node:net';
import { setImmediate as nextTick } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { buildRejections, reject } from '../../../src/http/rejection.ts';
import { RejectionBodies } from '../../../src/http/rejection-bodies.ts';
import { writeRejection } from '../../../src/http/write-response.ts';
import { Listener } from '../../../src/server/listener.ts';
import { testPair } from '../../harness/tls-fixture.ts';
import { openRecordClient, type RecordClient, recordTypes } from '../../harness/tls-records.ts';

const bodies = new RejectionBodies(buildRejections());

async function listen(requestCert: boolean) {
  const sockets: Socket[] = [];
  const listener = new Listener({
    ...{ host: '127.0.0.1', port: 0, keepAliveTimeoutMs: 60_000, requestHeadersBytes: 65_536 },
    tls: { ...testPair, requestCert },
    rejectMalformed: (_, socket) => socket.destroy(),
    handle(incoming, response) {
      if (incoming.url === '/') incoming.resume();
      else writeRejection(incoming, response, reject('transfer-encoding-unsupported'), bodies);
      return { ended() {} };
    },
    handleUpgrade: (_, socket) => void socket.resume(),
  });
  listener.server.prependListener('secureConnection', (socket) => sockets.push(socket));
  const { port } = await listener.listen();
  onTestFinished(() => listener.drain({ graceMs: 0, withinMs: 0 }));
  return { port, octets: () => sockets.reduce((sum, { bytesRead }) => sum + bytesRead, 0) };
}

const { data } = recordTypes;
const begun = (target = '/') => `POST ${target} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n`;
const webSocket = 'GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';
type More = (client: RecordClient, i: number) => readonly Buffer[];
const oneOctet =
  (text: string): More =>
  (client, i) => [client.record(data, text.charAt(i % text.length))];
const oneOfChunks = oneOctet('1\r\na\r\n');
const kinds: readonly (readonly [what: string, start: string, count: number, More])[] = [
  ['a head in records of one octet', 'GET / HTTP/1.1\r\nHost: a\r\nX: ', 600, oneOctet('a')],
  ['chunks in records of one octet', begun(), 600, oneOfChunks],
  ['records of one octet after a refusal', begun('/refused'), 600, oneOctet('a')],
  ['a WebSocket in records of one octet', webSocket, 600, oneOctet('a')],
  [
    'a KeyUpdate for each octet',
    begun(),
    300,
    (client, i) => [client.keyUpdate(), ...oneOfChunks(client, i)],
  ],
];

/** Sends `count` records on each connection at once; resolves to the most octets that one tick reads of them. */
async function longestTick(
  requestCert: boolean,
  connections: number,
  [, start, count, more]: (typeof kinds)[0],
): Promise<number> {
  const { port, octets } = await listen(requestCert);
  const opened = Array.from({ length: connections }, () => openRecordClient(port, 'TLSv1.3'));
  const clients = await Promise.all(opened);
  onTestFinished(() => {
    for (const { raw } of clients) raw.destroy();
  });
  for (const client of clients) client.raw.resume();
  const parts = clients.map((client) =>
    Buffer.concat([
      client.record(data, start),
      ...Array.from({ length: count }, (_, i) => more(client, i)).flat(),
    ]),
  );
  for (const [i, { raw }] of clients.entries()) raw.write(parts[i] as Buffer);
  // All octets arrive while the event loop stands still, so all connections are readable in its next tick.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
  const end = connections * (start.length + count);
  let [read, longest] = [octets(), 0];
  while (read < end) {
    await nextTick();
    const now = octets();
    longest = Math.max(longest, now - read);
    read = now;
  }
  return longest;
}

const cases = kinds.flatMap((kind) =>
  [false, true].map((requestCert) => [kind[0], requestCert, kind] as const),
);
it.each(cases)(
  '%s, on 40 connections: no tick reads half of them (certificates: %s)',
  async (_, asks, kind) => {
    expect(await longestTick(asks, 40, kind)).toBeLessThan(40 * (kind[2] / 2));
  },
);

it('a connection with 8,000 records of one octet is read in several ticks, so that others are read between them', async () => {
  // A read of Node has at most 2,850 of them.
  expect(await longestTick(false, 1, ['', begun(), 8_000, oneOfChunks])).toBeLessThan(3_000);
});
