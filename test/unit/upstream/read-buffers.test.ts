import { createServer as createHttpServer } from 'node:http';
import { connect, createServer } from 'node:net';
import { afterEach, expect, test, vi } from 'vitest';
import type { UpstreamClient } from '../../../src/upstream/port.ts';
import { type ForwardingFront, startFront } from '../../harness/forwarding-front.ts';
import { listen } from '../../harness/listen.ts';
import { ask, clientOf } from './direct-client.ts';

const connections = 8;
const ends: (() => unknown)[] = [];
afterEach(async () => {
  vi.restoreAllMocks();
  for (const end of ends.splice(0).reverse()) await end();
});

/** An upstream that ends each connection after its answer. The target names the body: a letter and its length. */
async function startClosing(): Promise<number> {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', (head) => {
      const [, letter = 'x', length = '1'] = /^GET \/(\w)(\d+)/.exec(head.toString()) ?? [];
      socket.end(
        `HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: ${length}\r\n\r\n${letter.repeat(Number(length))}`,
      );
    });
  });
  const { port, close } = await listen(server);
  ends.push(close);
  return port;
}

function clientFor(port: number): UpstreamClient {
  const client = clientOf(port, { connections });
  ends.push(() => client.close());
  return client;
}

async function read(
  client: UpstreamClient,
  target: string,
  isReleased = false,
): Promise<readonly Buffer[] | string> {
  const chunks: Buffer[] = [];
  const seen = await ask(
    client,
    { target },
    {
      onData(chunk, release) {
        if (isReleased) for (let i = 0; i < 2; i += 1) release?.();
        return chunks.push(chunk) > 0;
      },
    },
  );
  return typeof seen === 'string' ? seen : chunks;
}

const textOf = (seen: readonly Buffer[] | string) =>
  typeof seen === 'string' ? seen : Buffer.concat(seen).toString();

/** Number of read buffers that were allocated during `run`. */
async function countChunks(run: () => Promise<unknown>): Promise<number> {
  const made = vi.spyOn(Buffer, 'allocUnsafeSlow');
  await run();
  return made.mock.calls.filter(([bytes]) => bytes >= 65_536).length;
}

// Upstreams without keep-alive, or that are down, make us open a connection per request.
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
])('connections that are %s leave no read buffers behind', async (_, start, expected) => {
  const client = clientFor(await start());
  const made = await countChunks(async () => {
    for (let round = 0; round < 25; round += 1) {
      const burst = await Promise.all(Array.from({ length: connections }, () => read(client, '/x100')));
      for (const seen of burst) expect(textOf(seen)).toMatch(expected);
    }
  });
  // Only connections that are open at the same time need buffers.
  expect(made).toBeLessThanOrEqual(3 * connections);
});

test('a body that was passed on is never overwritten', async () => {
  const client = clientFor(await startClosing());
  const delayed = await Promise.all([read(client, '/a10'), read(client, '/b4000'), read(client, '/c60000')]);
  for (let round = 0; round < 10; round += 1) {
    await Promise.all(Array.from({ length: connections }, () => read(client, '/z60000')));
  }
  expect(delayed.map(textOf)).toEqual(['a'.repeat(10), 'b'.repeat(4_000), 'c'.repeat(60_000)]);
});

/** More than the kernel's buffers of a connection, so that data for a slow client waits here. */
const bodyBytes = 8_000_000;
const letters = [...'abcdefghijklmnopqrstuvwxyz'];

async function frontOf(): Promise<ForwardingFront> {
  const upstreamPort = await startKeeping();
  const front = await startFront({ upstreamPort, connections: letters.length });
  ends.push(() => front.close());
  return front;
}

/** An upstream with keep-alive. */
async function startKeeping(): Promise<number> {
  const server = createHttpServer((incoming, response) => {
    const [, letter = 'x', length = '1'] = /^\/(\w)(\d+)/.exec(incoming.url ?? '') ?? [];
    const body = letter.repeat(Number(length));
    if (length.endsWith('1')) response.write(body);
    else response.setHeader('Content-Length', body.length).write(body);
    response.end();
  });
  const { port, close } = await listen(server);
  ends.push(close);
  return port;
}

/** Reads the answers of one client. Returns letters of other clients' answers. */
async function readAll(
  port: number,
  letter: string,
  manner: 'at once' | 'slowly' | 'and leaves',
  rounds: number,
) {
  const socket = connect(port, '127.0.0.1').on('error', () => {});
  ends.push(() => socket.destroy());
  let octets = 0;
  let foreign = '';
  const isOther = new RegExp(`([^${letter}])\\1{63,}`);
  let wake = () => {};
  socket.on('close', () => wake());
  socket.on('data', (chunk: Buffer) => {
    octets += chunk.length;
    wake();
    foreign += isOther.exec(chunk.toString('latin1'))?.[1] ?? '';
    if (manner === 'and leaves' && octets > bodyBytes * 1.5) socket.destroy();
    if (manner !== 'slowly') return;
    socket.pause();
    setTimeout(() => socket.resume(), 5);
  });
  for (let round = 0; round < rounds && !socket.destroyed; round += 1) {
    const length = bodyBytes + (round % 2);
    const whole = octets + length;
    socket.write(`GET /${letter}${length} HTTP/1.1\r\nHost: s\r\n\r\n`);
    while (octets < whole && !socket.destroyed) {
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  }
  return foreign;
}

test('no client gets bytes of another one, while some read slowly and some leave', async () => {
  const { port } = await frontOf();
  const manners = ['at once', 'slowly', 'and leaves'] as const;
  const seen = letters.map((letter, i) => readAll(port, letter, manners[i % 3] ?? 'at once', 3));
  expect(await Promise.all(seen)).toEqual(letters.map(() => ''));
});

test('long bodies to a fast client reuse a few read buffers', async () => {
  const { port } = await frontOf();
  await readAll(port, 'a', 'at once', 1);
  const made = await countChunks(() => readAll(port, 'a', 'at once', 4));
  // At least 488 reads.
  expect(made).toBeLessThanOrEqual(16);
});

test('a buffer that is returned twice serves one connection only', async () => {
  const client = clientFor(await startKeeping());
  await read(client, '/a60000', true);
  const delayed = await Promise.all(letters.map((letter) => read(client, `/${letter}60000`)));
  expect(delayed.map(textOf)).toEqual(letters.map((letter) => letter.repeat(60_000)));
});
