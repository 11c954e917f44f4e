import { createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { request } from '../../harness/attack-stage.ts';
import { eventually } from '../../harness/eventually.ts';
import { openRawConnection, type RawConnection } from '../../harness/raw-client.ts';
import { type Shopward, startShopward } from '../../harness/shopward.ts';
import { octetsTaken, octetsUnread, untilStill } from '../../harness/until-still.ts';
import { leastBytes, ProcessMemory, probed } from './process-memory.ts';

/** Limit of what one connection may use above the state at rest. */
const allowedBytes = 262_144;
/** Connections per cut: two, so that one object more or less in the process does not matter. */
const count = 2;
/** Connections to the shop: bodies that arrive may use half of them, and at most five cuts are measured at once. */
const senderCount = 2 * 5 * count;

interface Cut {
  readonly framing: string;
  readonly parts: readonly Buffer[];
}

const chunksOf = (octets: number, times: number) =>
  Buffer.from(`${octets.toString(16)}\r\n${'a'.repeat(octets)}\r\n`.repeat(times));

/** Incomplete bodies within the limits of this test, and longer than a connection may keep in memory. */
const cuts: Record<string, Cut> = {
  'chunks of one octet': { framing: 'Transfer-Encoding: chunked', parts: [chunksOf(1, 70_000)] },
  'chunks of 1 KB': { framing: 'Transfer-Encoding: chunked', parts: [chunksOf(1_024, 1_500)] },
  'one chunk': { framing: 'Transfer-Encoding: chunked', parts: [chunksOf(1_500_000, 1)] },
  'with a length': { framing: 'Content-Length: 1600000', parts: [Buffer.alloc(1_500_000, 'a')] },
  'packets of one octet': {
    framing: 'Transfer-Encoding: chunked',
    parts: Array.from({ length: 1_000 }, () => chunksOf(1, 1)),
  },
};

/** The same cuts, short enough to be buffered whole. */
const shortCuts: typeof cuts = {
  ...cuts,
  'chunks of one octet': { framing: 'Transfer-Encoding: chunked', parts: [chunksOf(1, 100_000)] },
  'chunks of 1 KB': { framing: 'Transfer-Encoding: chunked', parts: [chunksOf(1_024, 120)] },
  'one chunk': { framing: 'Transfer-Encoding: chunked', parts: [chunksOf(120_000, 1)] },
  'with a length': { framing: 'Content-Length: 65000', parts: [Buffer.alloc(64_000, 'a')] },
};

/** Longer than the kernel's buffers of a connection without a reader. */
const longCuts: typeof cuts = {
  'chunks of 1 KB': { framing: 'Transfer-Encoding: chunked', parts: [chunksOf(1_024, 14_000)] },
  'one chunk': { framing: 'Transfer-Encoding: chunked', parts: [chunksOf(14_000_000, 1)] },
  'with a length': { framing: 'Content-Length: 15000000', parts: [Buffer.alloc(14_000_000, 'a')] },
};

interface Kind {
  readonly line: string;
  readonly cuts: typeof cuts;
  /** Cuts that are measured together first: if their sum is below the limit of one, each of them is. */
  readonly batches: readonly (readonly string[])[];
  /** The connection ends after the refusal. */
  readonly isRefused?: boolean;
  /** Opens connections that must exist first. */
  before?(port: number): Promise<RawConnection[]>;
}

const kinds: Record<string, Kind> = {
  'streamed to a shop that reads later': { line: 'POST /stores', cuts, batches: [Object.keys(cuts)] },
  'streamed to a shop that never reads': {
    line: 'POST /stores',
    cuts: longCuts,
    batches: [['chunks of 1 KB'], ['one chunk'], ['with a length']],
  },
  'waiting for a connection to the shop': {
    line: 'POST /stores',
    cuts,
    batches: [
      ['chunks of one octet', 'chunks of 1 KB', 'packets of one octet'],
      ['one chunk', 'with a length'],
    ],
    before: (port) => takeAll(port),
  },
  'collected whole': {
    line: 'POST /refresh-tokens',
    cuts: shortCuts,
    batches: [
      ['chunks of one octet', 'packets of one octet'],
      ['chunks of 1 KB', 'with a length'],
      ['one chunk'],
    ],
  },
  'refused without a reader': { line: 'GET /stores', cuts, batches: [Object.keys(cuts)], isRefused: true },
};

const rows = Object.entries(kinds).flatMap(([kind, one]) =>
  one.batches.flatMap((batch) => batch.map((name) => [kind, name, one, batch] as const)),
);

describe('memory of a connection while its body is under way', () => {
  let shopward: Shopward;
  let shop: Awaited<ReturnType<typeof startSilentShop>>;
  let memory: ProcessMemory;
  beforeAll(async () => {
    shop = await startSilentShop();
    shopward = await startShopward({
      upstream: `http://127.0.0.1:${shop.port}`,
      config: {
        upstream: { connections: senderCount, connectTimeout: '10m', responseTimeout: '10m' },
        // All connections come from one address.
        limits: { requestBody: '32MiB', bodyTimeout: '10m', clientShare: 100 },
      },
      env: probed,
    });
    memory = new ProcessMemory(shopward);
    // Warms up: code and objects that are created once belong to the state at rest.
    for (const kind of Object.values(kinds)) await bytesEach(kind, ['chunks of 1 KB']);
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

  /** Bytes per connection, with `count` connections for each cut. */
  const bytesEach = async ({ line, cuts, before, isRefused }: Kind, names: readonly string[]) => {
    const others = (await before?.(shopward.port)) ?? [];
    const connections = [...others];
    const open = async () => {
      const connection = await openRawConnection(shopward.port);
      connections.push(connection);
      return connection;
    };
    try {
      await eventually('the earlier requests', async () =>
        (await inFlight()) === others.length ? true : undefined,
      );
      const senders = await Promise.all(
        names.flatMap((name) =>
          Array.from({ length: count }, async () => ({ cut: cuts[name] as Cut, connection: await open() })),
        ),
      );
      const sockets = senders.map(({ connection }) => connection.socket);
      for (const socket of sockets) socket.on('error', () => {});
      const rest = await memory.bytes();
      for (const { cut, connection } of senders) {
        connection.socket.write(request(line, ['Content-Type: application/json', cut.framing]));
      }
      const most = Math.max(...senders.map(({ cut }) => cut.parts.length));
      for (let i = 0; i < most; i += 1) {
        for (const { cut, connection } of senders) {
          const part = cut.parts[i];
          if (part !== undefined && connection.socket.writable) connection.socket.write(part);
        }
        if (most > 1) await sleep(0);
      }
      // Otherwise nothing would be measured.
      const expected = others.length + (isRefused === true ? 0 : senders.length);
      await eventually('requests under way', async () =>
        (await inFlight()) === expected ? true : undefined,
      );
      await untilStill(livez, () => octetsTaken(sockets) - octetsUnread(shopward.port));
      expect(await inFlight()).toBe(expected);
      return ((await memory.bytes(rest + allowedBytes * count)) - rest) / count;
    } finally {
      for (const connection of connections) connection.close();
      shop.cut();
      while ((await inFlight()) > 0) await sleep(50);
    }
  };

  /** A batch is measured once, by its first case. */
  const measured = new Map<readonly string[], Promise<number>>();
  const together = async (kind: Kind, batch: readonly string[]) => {
    const before = measured.get(batch);
    if (before !== undefined) return before;
    const bytes = leastBytes(allowedBytes, () => bytesEach(kind, batch), 1);
    measured.set(batch, bytes);
    // After a failure, the next case measures again.
    bytes.catch(() => measured.delete(batch));
    console.info(`${kind.line}, ${batch.join(' + ')}: ${Math.round((await bytes) / 1024)} KiB`);
    return bytes;
  };

  it.each(rows)('%s, %s', { concurrent: false }, async (_, name, kind, batch) => {
    let bytes = await together(kind, batch);
    // If the batch uses too much, measures this cut alone.
    if (bytes >= allowedBytes) bytes = await leastBytes(allowedBytes, () => bytesEach(kind, [name]));
    expect(bytes).toBeLessThan(allowedBytes);
  });
});

/** Occupies each connection to the shop with a request that it does not answer. */
async function takeAll(port: number): Promise<RawConnection[]> {
  const all = await Promise.all(Array.from({ length: senderCount }, () => openRawConnection(port)));
  for (const connection of all) await connection.write(request('GET /stores'));
  return all;
}

/** A shop that accepts connections, but neither reads nor writes. */
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
