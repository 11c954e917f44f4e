import type { Socket } from 'node:net';
import { setImmediate as nextTick } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { Listener } from '../../../src/server/listener.ts';
import { noteRead, ReadQueue } from '../../../src/server/read-queue.ts';
import { openRawConnection } from '../../harness/raw-client.ts';

/** Sockets that note in `events` when they are stopped and read again. */
function openSockets(count: number) {
  const events: string[] = [];
  const sockets = Array.from({ length: count }, (_, i) => {
    const readStop = () => void events.push(`stop ${i}`);
    const readStart = () => void events.push(`read ${i}`);
    return { bytesRead: 0, _handle: { reading: true, readStop, readStart } };
  });
  const open = new Map(sockets.map((socket) => [socket as unknown as Socket, undefined]));
  const queue = new ReadQueue(open);
  onTestFinished(() => queue.close());
  const of = (i: number) => [...open.keys()][i] as Socket;
  return { events, sockets, queue, of };
}

const beLong = () => noteRead(1_000_000);
const all = (word: string, count: number) => Array.from({ length: count }, (_, i) => `${word} ${i}`);

it('a long tick stops all sockets once; later ticks read them in order, twice as many in each', async () => {
  const { events, sockets } = openSockets(300);
  beLong();
  beLong();
  expect(events.splice(0)).toEqual(all('stop', 300));
  (sockets[299] as (typeof sockets)[0])._handle.reading = false;
  const counts = [];
  const read: string[] = [];
  while (read.length < 299) {
    await nextTick();
    if (events.length > 0) counts.push(events.length);
    read.push(...events.splice(0));
  }
  // The last one was paused meanwhile.
  expect([read, counts]).toEqual([all('read', 299), [32, 64, 128, 75]]);
});

it('a socket that a long tick did not reach stays first; one that was read comes last', async () => {
  const { events, sockets } = openSockets(40);
  beLong();
  await nextTick();
  expect(events.splice(0)).toEqual([...all('stop', 40), ...all('read', 32)]);
  for (const i of [0, 2]) (sockets[i] as { bytesRead: number }).bytesRead = 1;
  beLong();
  await nextTick();
  const read = events.splice(0).filter((event) => event.startsWith('read'));
  expect(read).toEqual(all('read', 40).filter((_, i) => i < 18 && i !== 0 && i !== 2));
  await nextTick();
  expect(events.splice(0).slice(-2)).toEqual(['read 0', 'read 2']);
});

it('a waiting socket that Node resumes, and a new one, still wait; a closed one does not', async () => {
  const { events, queue, of } = openSockets(40);
  queue.join(of(0));
  queue.resumed(of(1));
  expect(events).toEqual([]);
  beLong();
  await nextTick();
  events.length = 0;
  queue.resumed(of(39));
  queue.resumed(of(0));
  queue.join(of(38));
  queue.leave(of(37));
  expect(events.splice(0)).toEqual(['stop 39', 'stop 38']);
  await nextTick();
  expect(events).toEqual([32, 33, 34, 35, 36, 38, 39].map((i) => `read ${i}`));
});

it('a closed queue stops no socket', () => {
  const { events, queue } = openSockets(1);
  queue.close();
  beLong();
  expect(events).toEqual([]);
});

it('a client beside 12 that send endless bodies in chunks of one octet is read in time', async () => {
  let octets = 0;
  const listener = new Listener({
    ...{ host: '127.0.0.1', port: 0, keepAliveTimeoutMs: 60_000, requestHeadersBytes: 16_384 },
    rejectMalformed: (_, socket) => socket.destroy(),
    handle(incoming, response) {
      if (incoming.method === 'GET') response.end();
      else
        incoming.on('data', (chunk: Buffer) => {
          octets += chunk.length;
        });
      return { ended() {} };
    },
  });
  const { port } = await listener.listen();
  onTestFinished(() => listener.drain({ graceMs: 0, withinMs: 0 }));
  const connect = () => openRawConnection(port);
  const [client, ...others] = await Promise.all([connect(), ...Array.from({ length: 12 }, connect)]);
  onTestFinished(() => {
    for (const connection of [client, ...others]) connection.close();
  });
  const get = async () => {
    await client.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    await client.readResponse();
  };
  await get();
  const chunks = Buffer.from('1\r\na\r\n'.repeat(11_000));
  for (const { socket } of others) {
    socket.on('error', () => {});
    const send = (fault?: unknown) =>
      fault === undefined && void socket.write(chunks, (error) => send(error ?? undefined));
    socket.write('POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n');
    send();
  }
  while (octets < 200_000) await nextTick();
  for (let i = 0; i < 3; i += 1) {
    const before = octets;
    await get();
    // Each of the others has at most three reads of 64 KiB meanwhile.
    expect(octets - before).toBeLessThan(3 * 12 * 11_000);
  }
});
