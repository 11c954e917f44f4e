import { createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { request } from '../harness/attack-stage.ts';
import { eventually } from '../harness/eventually.ts';
import { openRawConnection, type RawConnection } from '../harness/raw-client.ts';
import { type Shopward, startShopward } from '../harness/shopward.ts';
import { octetsTaken, octetsUnread, untilStill } from '../harness/until-still.ts';
import { leastBytes, ProcessMemory, probed } from './process-memory.ts';

/** What one connection may hold above rest, whatever it sends. */
const allowedBytes = 262_144;
/** Connections of a measurement: one object of the process itself more or less is then no matter. */
const count = 8;

const chunksOf = (octets: number, times: number) =>
  Buffer.from(`${octets.toString(16)}\r\n${'a'.repeat(octets)}\r\n`.repeat(times));

/** Bodies without their end, within the limits of this test, and longer than a connection may hold. */
const cuts: Record<string, { framing: string; pieces: Buffer[] }> = {
  'chunks of one octet': { framing: 'Transfer-Encoding: chunked', pieces: [chunksOf(1, 70_000)] },
  'chunks of 1 KB': { framing: 'Transfer-Encoding: chunked', pieces: [chunksOf(1_024, 1_500)] },
  'one chunk': { framing: 'Transfer-Encoding: chunked', pieces: [chunksOf(1_500_000, 1)] },
  'with a length': { framing: 'Content-Length: 1600000', pieces: [Buffer.alloc(1_500_000, 'a')] },
  'packets of one octet': {
    framing: 'Transfer-Encoding: chunked',
    pieces: Array.from({ length: 3_000 }, () => chunksOf(1, 1)),
  },
};

/** The same, short enough to be collected. */
const shortCuts: typeof cuts = {
  ...cuts,
  'chunks of one octet': { framing: 'Transfer-Encoding: chunked', pieces: [chunksOf(1, 100_000)] },
  'chunks of 1 KB': { framing: 'Transfer-Encoding: chunked', pieces: [chunksOf(1_024, 120)] },
  'one chunk': { framing: 'Transfer-Encoding: chunked', pieces: [chunksOf(120_000, 1)] },
  'with a length': { framing: 'Content-Length: 65000', pieces: [Buffer.alloc(64_000, 'a')] },
};

describe.each(['llhttp', 'http-proxy-3'])(
  'memory of a connection while its body is under way (%s)',
  (engine) => {
    let shopward: Shopward;
    let shop: Awaited<ReturnType<typeof startSilentShop>>;
    let memory: ProcessMemory;
    beforeAll(async () => {
      shop = await startSilentShop();
      shopward = await startShopward({
        upstream: `http://127.0.0.1:${shop.port}`,
        config: {
          upstream: { engine, connections: 2 * count, connectTimeout: '10m', responseTimeout: '10m' },
          // One client here stands for many.
          limits: { requestBody: '32MiB', clientShare: 100 },
        },
        env: probed,
      });
      memory = new ProcessMemory(shopward);
      // What is loaded and made only once belongs to the state of rest.
      for (const kind of Object.values(kinds)) {
        await bytesEach(kind, Object.values(kind.cuts)[1] as Cut);
      }
    });
    afterAll(async () => {
      await shopward.kill();
      await shop.close();
    });

    const inFlight = async () => {
      const text = await (await fetch(`${shopward.adminUrl}/metrics`)).text();
      return Number(/^http_server_active_requests (\d+)$/m.exec(text)?.[1]);
    };

    const livez = () => fetch(`${shopward.adminUrl}/livez`);

    const bytesEach = async ({ line, before, isRefused }: Kind, cut: Cut) => {
      const others = (await before?.(shopward.port)) ?? [];
      await eventually('the requests before them', async () =>
        (await inFlight()) === others.length ? true : undefined,
      );
      const connections = await Promise.all(
        Array.from({ length: count }, () => openRawConnection(shopward.port)),
      );
      for (const { socket } of connections) socket.on('error', () => {});
      const rest = await memory.bytes();
      const head = request(line, ['Content-Type: application/json', cut.framing]);
      for (const { socket } of connections) socket.setNoDelay(true).write(head);
      for (const piece of cut.pieces) {
        for (const { socket } of connections) if (socket.writable) socket.write(piece);
        if (cut.pieces.length > 1) await sleep(0);
      }
      // Otherwise the measure would be of nothing.
      const expected = others.length + (isRefused === true ? 0 : count);
      await eventually('requests under way', async () =>
        (await inFlight()) === expected ? true : undefined,
      );
      const sockets = connections.map(({ socket }) => socket);
      await untilStill(livez, () => octetsTaken(sockets) - octetsUnread(shopward.port));
      expect(await inFlight()).toBe(expected);
      const bytes = ((await memory.bytes()) - rest) / count;
      for (const connection of [...connections, ...others]) connection.close();
      shop.cut();
      while ((await inFlight()) > 0) await sleep(50);
      return bytes;
    };

    const rows = Object.entries(kinds).flatMap(([kind, one]) =>
      Object.entries(one.cuts).map(([name, cut]) => [kind, name, one, cut] as const),
    );
    it.each(rows)('%s, %s', async (kind, name, one, cut) => {
      const bytes = await leastBytes(allowedBytes, () => bytesEach(one, cut));
      console.info(`${engine}, ${kind}, ${name}: ${Math.round(bytes / 1024)} KiB a connection`);
      expect(bytes).toBeLessThan(allowedBytes);
    });
  },
);

interface Cut {
  readonly framing: string;
  readonly pieces: readonly Buffer[];
}

interface Kind {
  readonly line: string;
  readonly cuts: typeof cuts;
  /** The connection ends after its refusal. */
  readonly isRefused?: boolean;
  /** Connections that are there first. */
  before?(port: number): Promise<RawConnection[]>;
}

/** More than the kernel keeps of a connection that nobody reads. */
const longCuts: typeof cuts = {
  'chunks of 1 KB': { framing: 'Transfer-Encoding: chunked', pieces: [chunksOf(1_024, 14_000)] },
  'one chunk': { framing: 'Transfer-Encoding: chunked', pieces: [chunksOf(14_000_000, 1)] },
  'with a length': { framing: 'Content-Length: 15000000', pieces: [Buffer.alloc(14_000_000, 'a')] },
};

const kinds: Record<string, Kind> = {
  'streamed to a shop that reads later': { line: 'POST /stores', cuts },
  'streamed to a shop that never reads': { line: 'POST /stores', cuts: longCuts },
  'waiting for a connection to the shop': { line: 'POST /stores', cuts, before: (port) => takeAll(port) },
  'collected whole': { line: 'POST /refresh-tokens', cuts: shortCuts },
  'refused, and nobody wants it': { line: 'GET /stores', cuts, isRefused: true },
};

/** Every connection to the shop is taken by a request that it does not answer. */
async function takeAll(port: number): Promise<RawConnection[]> {
  const all = await Promise.all(Array.from({ length: 2 * count }, () => openRawConnection(port)));
  for (const connection of all) await connection.write(request('GET /stores'));
  return all;
}

/** A shop that takes connections, and reads and says nothing. */
async function startSilentShop() {
  const sockets = new Set<Socket>();
  const server = createServer({ pauseOnConnect: true }, (socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as { port: number }).port,
    cut() {
      for (const socket of sockets) socket.destroy();
    },
    close: () => new Promise((resolve) => server.close(resolve)),
  };
}
