import { createServer, type Socket } from 'node:net';
import path from 'node:path';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { request } from '../harness/attack-stage.ts';
import { openRawConnection } from '../harness/raw-client.ts';
import { type Shopward, startShopward } from '../harness/shopward.ts';

/** What one connection of a client and its connection to the shop may hold above rest. */
const allowedBytes = 262_144;
const count = 16;
const probe = pathToFileURL(path.join(import.meta.dirname, 'memory-probe.ts')).href;

const chunksOf = (octets: number, bytes: number) =>
  `${octets.toString(16)}\r\n${'a'.repeat(octets)}\r\n`.repeat(bytes / (octets + 5));

/** Answers that are longer than the kernel keeps for a client that does not read. */
const answers = {
  'chunks of one octet': chunksOf(1, 16_000_000),
  'chunks of 100 octets': chunksOf(100, 16_000_000),
  'chunks of 1 KB': chunksOf(1_024, 16_000_000),
  'chunks of 4 KB': chunksOf(4_095, 16_000_000),
  'chunks of 34 KB': chunksOf(34_000, 16_000_000),
  'chunks of 1 MB': chunksOf(1_000_000, 16_000_000),
};

function* piecesOf(text: string) {
  for (let at = 0; at < text.length; at += 65_536) yield Buffer.from(text.slice(at, at + 65_536));
}

describe.each(['llhttp', 'http-proxy-3'])('memory of an answer that nobody reads (%s)', (engine) => {
  let shopward: Shopward;
  let body = '';
  let seq = 0;
  const shops = new Set<Socket>();
  const shop = createServer((socket) => {
    shops.add(socket);
    socket.on('error', () => {});
    socket.once('data', () => {
      socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
      Readable.from(piecesOf(body)).pipe(socket);
    });
  });
  beforeAll(async () => {
    await new Promise<void>((resolve) => shop.listen(0, '127.0.0.1', resolve));
    const { port } = shop.address() as { port: number };
    shopward = await startShopward({
      upstream: `http://127.0.0.1:${port}`,
      config: { upstream: { engine } },
      env: { NODE_OPTIONS: `--import ${probe}` },
    });
    await bytesEach(answers['chunks of 1 KB']);
  });
  afterAll(async () => {
    await shopward.kill();
    for (const socket of shops) socket.destroy();
    shop.close();
  });

  const memory = async () => {
    const mine = ++seq;
    shopward.signal('SIGUSR2');
    return Number((await shopward.waitForLog(({ event, seq }) => event === 'memory' && seq === mine)).bytes);
  };

  const bytesEach = async (text: string) => {
    body = text;
    const rest = await memory();
    const connections = await Promise.all(
      Array.from({ length: count }, () => openRawConnection(shopward.port)),
    );
    for (const { socket } of connections) {
      socket.on('error', () => {});
      socket.pause();
      socket.write(request('GET /stores'));
    }
    // Until nobody takes any more: what is on its way through is no matter.
    for (let before = -1, quiet = 0; quiet < 8; ) {
      await sleep(100);
      const now = [...shops].reduce((sum, { bytesWritten }) => sum + bytesWritten, 0);
      quiet = now === before && shops.size === count ? quiet + 1 : 0;
      before = now;
    }
    const bytes = ((await memory()) - rest) / count;
    expect([...shops].filter((socket) => !socket.destroyed && socket.writableLength > 0).length).toBe(count);
    for (const connection of connections) connection.close();
    for (const socket of shops) socket.destroy();
    shops.clear();
    await sleep(300);
    return bytes;
  };

  it.each(Object.entries(answers))('%s', async (name, text) => {
    const bytes = await bytesEach(text);
    console.info(`${engine}, ${name}: ${Math.round(bytes / 1024)} KiB a connection`);
    expect(bytes).toBeLessThan(allowedBytes);
  });
});
