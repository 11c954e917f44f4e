import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { afterEach, expect, test, vi } from 'vitest';
import type { UpstreamEngine } from '../../src/upstream/engine.ts';
import { createLlhttpEngine } from '../../src/upstream/llhttp/engine.ts';

const connections = 8;
const ends: (() => unknown)[] = [];
afterEach(async () => {
  vi.restoreAllMocks();
  for (const end of ends.splice(0).reverse()) await end();
});

/** An upstream that ends each connection with its answer, of the body that the target names: a letter and its length. */
async function startClosing(): Promise<number> {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', (head) => {
      const [, letter = 'x', length = '1'] = /^GET \/(\w)(\d+)/.exec(head.toString()) ?? [];
      socket.end(
        `HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: ${length}\r\n\r\n${letter.repeat(Number(length))}`,
      );
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  ends.push(() => server.close());
  return (server.address() as AddressInfo).port;
}

function engineFor(port: number): UpstreamEngine {
  const engine = createLlhttpEngine({
    upstream: { scheme: 'http', hostname: '127.0.0.1', port },
    connectTimeoutMs: 30_000,
    connections,
    queueLimit: 1_000,
    queueTimeoutMs: 60_000,
  });
  ends.push(() => engine.close());
  return engine;
}

function ask(engine: UpstreamEngine, target: string): Promise<readonly Buffer[] | string> {
  const pieces: Buffer[] = [];
  return new Promise((resolve) => {
    engine.dispatch(
      { method: 'GET', target, fields: ['Host', 's'], body: null },
      {
        onHead() {},
        onData: (piece) => pieces.push(piece) > 0,
        onEnd: () => resolve(pieces),
        onFault: ({ kind }) => resolve(kind),
      },
    );
  });
}

/** Buffers of the length in which connections read, that were made meanwhile. */
async function countPieces(run: () => Promise<unknown>): Promise<number> {
  const made = vi.spyOn(Buffer, 'allocUnsafeSlow');
  await run();
  return made.mock.calls.filter(([bytes]) => bytes >= 65_536).length;
}

// A connection for each request is what an upstream without keep-alive, and one that is away, has us open.
test.each([
  ['ended with their answer', startClosing, /^x+$/],
  [
    'refused',
    async () => {
      const port = await startClosing();
      await ends.pop()?.();
      return port;
    },
    /^unreachable$/,
  ],
])('connections that are %s leave no memory behind', async (_, start, expected) => {
  const engine = engineFor(await start());
  const made = await countPieces(async () => {
    for (let round = 0; round < 25; round += 1) {
      const burst = await Promise.all(Array.from({ length: connections }, () => ask(engine, '/x100')));
      for (const seen of burst) {
        expect(typeof seen === 'string' ? seen : Buffer.concat(seen).toString()).toMatch(expected);
      }
    }
  });
  // Of 200: those of one burst, and as many whose end was not yet seen when the next one came.
  expect(made).toBeLessThanOrEqual(3 * connections);
});

test('what somebody was given is never written to again', async () => {
  const engine = engineFor(await startClosing());
  const held = await Promise.all([ask(engine, '/a10'), ask(engine, '/b4000'), ask(engine, '/c60000')]);
  for (let round = 0; round < 10; round += 1) {
    await Promise.all(Array.from({ length: connections }, () => ask(engine, '/z60000')));
  }
  const texts = held.map((pieces) =>
    typeof pieces === 'string' ? pieces : Buffer.concat(pieces).toString(),
  );
  expect(texts).toEqual(['a'.repeat(10), 'b'.repeat(4_000), 'c'.repeat(60_000)]);
});
