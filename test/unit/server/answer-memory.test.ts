import { createServer, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { request } from '../../harness/attack-stage.ts';
import { eventually } from '../../harness/eventually.ts';
import { openRawConnection } from '../../harness/raw-client.ts';
import { type Shopward, startShopward } from '../../harness/shopward.ts';
import { octetsTaken, untilStill } from '../../harness/until-still.ts';
import { leastBytes, ProcessMemory, probed } from './process-memory.ts';

/** What one connection of a client and its connection to the shop may hold above rest. */
const allowedBytes = 262_144;

/** About 64 KiB of an answer in chunks of so many octets. */
const chunksOf = (octets: number) =>
  Buffer.from(`${octets.toString(16)}\r\n${'a'.repeat(octets)}\r\n`.repeat(Math.ceil(65_536 / (octets + 5))));

/** Octets of a chunk, and connections: the kernel keeps some 8 MB for each client that does not read. */
const answers: Readonly<Record<string, readonly [number, number]>> = {
  'chunks of one octet': [1, 4],
  'chunks of 100 octets': [100, 8],
  'chunks of 1 KB': [1_024, 8],
  'chunks of 4 KB': [4_095, 8],
  'chunks of 34 KB': [34_000, 8],
  'chunks of 1 MB': [1_000_000, 8],
};

/** An answer that is longer than all that the kernel keeps on its way: 42 MB. */
function* longAnswer(piece: Buffer) {
  for (let i = 0; i < 640; i += 1) yield piece;
}

describe('memory of an answer that nobody reads', () => {
  let shopward: Shopward;
  let memory: ProcessMemory;
  let piece = Buffer.alloc(0);
  const shops = new Set<Socket>();
  const shop = createServer((socket) => {
    shops.add(socket);
    socket.on('error', () => {});
    socket.once('data', () => {
      socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
      Readable.from(longAnswer(piece), { objectMode: true, highWaterMark: 1 }).pipe(socket);
    });
  });
  beforeAll(async () => {
    await new Promise<void>((resolve) => shop.listen(0, '127.0.0.1', resolve));
    const { port } = shop.address() as { port: number };
    shopward = await startShopward({
      upstream: `http://127.0.0.1:${port}`,
      env: probed,
    });
    memory = new ProcessMemory(shopward);
    await bytesEach(1_024, 8);
  });
  afterAll(async () => {
    await shopward.kill();
    for (const socket of shops) socket.destroy();
    shop.close();
  });

  const livez = () => fetch(`${shopward.adminUrl}/livez`);

  const bytesEach = async (octets: number, count: number) => {
    piece = chunksOf(octets);
    const rest = await memory.bytes();
    const connections = await Promise.all(
      Array.from({ length: count }, () => openRawConnection(shopward.port)),
    );
    try {
      for (const { socket } of connections) {
        socket.on('error', () => {});
        socket.pause();
        socket.write(request('GET /stores'));
      }
      await eventually('all of them to be asked', () => shops.size === count || undefined);
      await untilStill(livez, () => octetsTaken(shops));
      const bytes = ((await memory.bytes(rest + allowedBytes * count)) - rest) / count;
      const waiting = [...shops].filter((socket) => !socket.destroyed && socket.writableLength > 0);
      expect(waiting).toHaveLength(count);
      return bytes;
    } finally {
      for (const connection of connections) connection.close();
      for (const socket of shops) socket.destroy();
      shops.clear();
    }
  };

  it.each(Object.entries(answers))('%s', { concurrent: false }, async (name, [octets, count]) => {
    const bytes = await leastBytes(allowedBytes, () => bytesEach(octets, count));
    console.info(`${name}: ${Math.round(bytes / 1024)} KiB a connection`);
    expect(bytes).toBeLessThan(allowedBytes);
  });
});
