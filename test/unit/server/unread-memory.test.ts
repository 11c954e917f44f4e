import { createServer, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { request } from '../../harness/attack-stage.ts';
import { eventually } from '../../harness/eventually.ts';
import { openRawConnection } from '../../harness/raw-client.ts';
import { type Shopward, startShopward } from '../../harness/shopward.ts';
import { octetsTaken, octetsUnread, untilStill } from '../../harness/until-still.ts';
import { leastBytes, ProcessMemory, probed } from './process-memory.ts';

/** Limit of what one connection of a client, with its connection to the shop, may use above the state at rest. */
const allowedBytes = 262_144;

/** About 64 KiB of an answer in chunks of this many octets. */
const chunksOf = (octets: number) =>
  Buffer.from(`${octets.toString(16)}\r\n${'a'.repeat(octets)}\r\n`.repeat(Math.ceil(65_536 / (octets + 5))));

/** An answer that is longer than the kernel's buffers on its way: 42 MB. */
function* longAnswer(part: Buffer) {
  for (let i = 0; i < 640; i += 1) yield part;
}

interface Flood {
  /** Sent on each connection. */
  readonly octets: string;
  readonly connections: number;
  /** Size of the chunks of the long answer, in octets. */
  readonly chunk?: number;
}

const small = (path: string) => `GET ${path} HTTP/1.1\r\nHost: s\r\n\r\n`;
const fields = (value: string) => Array.from({ length: 254 }, (_, i) => `${i.toString(36)}:${value}`);
const flood = (octets: string, times: number, connections = 8): Flood => ({
  octets: octets.repeat(times),
  connections,
});
/** The kernel buffers some 8 MB for each client that does not read. */
const long = (chunk: number, connections = 8): Flood => ({ ...flood(small('/long'), 1, connections), chunk });

const floods: Readonly<Record<string, Flood>> = {
  'a long answer in chunks of one octet': long(1, 2),
  'a long answer in chunks of 100 octets': long(100),
  'a long answer in chunks of 1 KB': long(1_024),
  'a long answer in chunks of 4 KB': long(4_095),
  'a long answer in chunks of 34 KB': long(34_000),
  'a long answer in chunks of 1 MB': long(1_000_000),
  '62 KB of small requests to a shop that is silent': flood(small('/silent'), 2_000, 100),
  'small requests without end': flood(small('/stores'), 400_000),
  'requests of 256 small fields': flood(request('GET /silent', fields('')), 100),
  'requests of 256 longer fields': flood(request('GET /silent', fields('a'.repeat(70))), 100),
  'requests of one long field': flood(request('GET /silent', [`A: ${'a'.repeat(3_500)}`]), 100),
  'small requests, each with a body': flood(
    request('POST /silent', ['Content-Type: text/plain', 'Content-Length: 1'], 'x'),
    2_000,
  ),
};

describe('memory of a connection whose client reads nothing', () => {
  let shopward: Shopward;
  let memory: ProcessMemory;
  let part = Buffer.alloc(0);
  const shops = new Set<Socket>();
  const shop = createServer((socket) => {
    shops.add(socket);
    socket.on('error', () => {});
    socket.on('data', (octets) => {
      if (octets.includes('GET /stores')) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
      if (!octets.includes('GET /long')) return;
      socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
      Readable.from(longAnswer(part), { objectMode: true, highWaterMark: 1 }).pipe(socket);
    });
  });
  beforeAll(async () => {
    await new Promise<void>((resolve) => shop.listen(0, '127.0.0.1', resolve));
    const { port } = shop.address() as { port: number };
    // All limits have their defaults.
    shopward = await startShopward({
      upstream: `http://127.0.0.1:${port}`,
      config: { upstream: { responseTimeout: '10m' } },
      env: probed,
    });
    memory = new ProcessMemory(shopward);
    // Warms up: code and objects that are created once belong to the state at rest.
    for (const one of Object.values(floods))
      if (one.chunk === undefined || one.chunk === 1_024) await bytesEach(one);
  });
  afterAll(async () => {
    await shopward.kill();
    for (const socket of shops) socket.destroy();
    shop.close();
  });

  const livez = () => fetch(`${shopward.adminUrl}/livez`);

  const bytesEach = async ({ octets, connections: count, chunk }: Flood) => {
    if (chunk !== undefined) part = chunksOf(chunk);
    const rest = await memory.bytes();
    const connections = await Promise.all(
      Array.from({ length: count }, () => openRawConnection(shopward.port)),
    );
    const sockets = connections.map(({ socket }) => socket);
    try {
      for (const socket of sockets) {
        socket.on('error', () => {});
        socket.pause();
        socket.write(octets);
      }
      if (chunk !== undefined)
        await eventually('all of them to be asked', () => shops.size === count || undefined);
      const moved = () =>
        chunk === undefined ? octetsTaken(sockets) - octetsUnread(shopward.port) : octetsTaken(shops);
      await untilStill(livez, moved);
      const bytes = ((await memory.bytes(rest + allowedBytes * count)) - rest) / count;
      const waiting = [...shops].filter((socket) => !socket.destroyed && socket.writableLength > 0);
      if (chunk !== undefined) expect(waiting).toHaveLength(count);
      return bytes;
    } finally {
      for (const connection of connections) connection.close();
      for (const socket of shops) socket.destroy();
      shops.clear();
    }
  };

  it.each(Object.entries(floods))('%s', { concurrent: false }, async (name, one) => {
    const bytes = await leastBytes(allowedBytes, () => bytesEach(one));
    console.info(`${name}: ${Math.round(bytes / 1024)} KiB a connection`);
    expect(bytes).toBeLessThan(allowedBytes);
  });
});
