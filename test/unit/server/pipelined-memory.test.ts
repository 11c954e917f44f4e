import { createServer, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { request } from '../../harness/attack-stage.ts';
import { openRawConnection } from '../../harness/raw-client.ts';
import { type Shopward, startShopward } from '../../harness/shopward.ts';
import { octetsTaken, octetsUnread, untilStill } from '../../harness/until-still.ts';
import { leastBytes, ProcessMemory, probed } from './process-memory.ts';

/** What one connection may take above rest, whatever it sends. */
const allowedBytes = 262_144;

const small = (path: string) => `GET ${path} HTTP/1.1\r\nHost: s\r\n\r\n`;
const fields = (value: string) => Array.from({ length: 254 }, (_, i) => `${i.toString(36)}:${value}`);

/** What each connection sends, how often, and how many of them do. */
const floods: Readonly<Record<string, readonly [octets: string, times: number, connections: number]>> = {
  '62 KB of small requests to a shop that is silent': [small('/silent'), 2_000, 100],
  'small requests without end, whose answers nobody reads': [small('/stores'), 400_000, 8],
  'requests of 256 small fields': [request('GET /silent', fields('')), 100, 8],
  'requests of 256 longer fields': [request('GET /silent', fields('a'.repeat(70))), 100, 8],
  'requests of one long field': [request('GET /silent', [`A: ${'a'.repeat(3_500)}`]), 100, 8],
  'small requests, each with a body': [
    request('POST /silent', ['Content-Type: text/plain', 'Content-Length: 1'], 'x'),
    2_000,
    8,
  ],
};

describe('memory of a connection whose client pipelines', () => {
  let shopward: Shopward;
  let memory: ProcessMemory;
  const shops = new Set<Socket>();
  const shop = createServer((socket) => {
    shops.add(socket);
    socket.on('error', () => {});
    socket.on('data', (octets) => {
      if (octets.includes('GET /stores')) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
    });
  });
  beforeAll(async () => {
    await new Promise<void>((resolve) => shop.listen(0, '127.0.0.1', resolve));
    const { port } = shop.address() as { port: number };
    // Every limit has its default.
    shopward = await startShopward({
      upstream: `http://127.0.0.1:${port}`,
      config: { upstream: { responseTimeout: '10m' } },
      env: probed,
    });
    memory = new ProcessMemory(shopward);
    // What is loaded and made only once belongs to the state of rest.
    for (const flood of Object.values(floods)) await bytesEach(flood);
  });
  afterAll(async () => {
    await shopward.kill();
    for (const socket of shops) socket.destroy();
    shop.close();
  });

  const livez = () => fetch(`${shopward.adminUrl}/livez`);

  const bytesEach = async ([octets, times, count]: (typeof floods)[string]) => {
    const rest = await memory.bytes();
    const connections = await Promise.all(
      Array.from({ length: count }, () => openRawConnection(shopward.port)),
    );
    const sockets = connections.map(({ socket }) => socket);
    try {
      for (const socket of sockets) {
        socket.on('error', () => {});
        socket.pause();
        socket.write(octets.repeat(times));
      }
      await untilStill(livez, () => octetsTaken(sockets) - octetsUnread(shopward.port));
      return ((await memory.bytes(rest + allowedBytes * count)) - rest) / count;
    } finally {
      for (const connection of connections) connection.close();
      for (const socket of shops) socket.destroy();
      shops.clear();
    }
  };

  it.each(Object.entries(floods))('%s', async (name, flood) => {
    const bytes = await leastBytes(allowedBytes, () => bytesEach(flood));
    console.info(`${name}: ${Math.round(bytes / 1024)} KiB a connection`);
    expect(bytes).toBeLessThan(allowedBytes);
  });
});
