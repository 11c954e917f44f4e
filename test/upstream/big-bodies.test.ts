import { fork } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import { engines } from '../harness/forwarding-front.ts';
import { openRawConnection } from '../harness/raw-client.ts';

const megabyte = Buffer.alloc(1_048_576, 'a');
const size = 100 * megabyte.length;
/** Growth of the bytes in use that a body held in memory would pass by far. */
const allowedGrowth = 40 * 1_048_576;

/** Long enough for all of a body to arrive, were nobody to hold it up. */
const aWhile = () => new Promise((resolve) => setTimeout(resolve, 1_500));

interface Front {
  readonly port: number;
  /** Bytes in use after garbage collection, and their highest point since the last call. */
  memory(): Promise<{ now: number; peak: number }>;
  end(): void;
}

/** The front in a process of its own, so that its memory is nobody else's. */
async function forkFront(engine: string, upstreamPort: number): Promise<Front> {
  const child = fork(
    new URL('../harness/front-process.ts', import.meta.url),
    [engine, String(upstreamPort)],
    {
      execArgv: ['--expose-gc'],
    },
  );
  const [port] = (await once(child, 'message')) as [number];
  return {
    port,
    memory: async () => {
      child.send('memory');
      return ((await once(child, 'message')) as [{ now: number; peak: number }])[0];
    },
    end: () => void child.kill(),
  };
}

describe.each(engines)('100 MB at flat memory ($name)', ({ name }) => {
  it.each([
    ['with a length', (head: string) => `${head}Content-Length: ${size}\r\n\r\n`],
    ['in chunks', (head: string) => `${head}Transfer-Encoding: chunked\r\n\r\n`],
  ])('up, %s, to an upstream that reads slowly', async (how, frame) => {
    let received = 0;
    const upstream = createServer(async (incoming, response) => {
      await aWhile();
      incoming.on('data', (chunk: Buffer) => {
        received += chunk.length;
        incoming.pause();
        setImmediate(() => incoming.resume());
      });
      incoming.on('end', () => response.end(String(received)));
    }).listen(0, '127.0.0.1');
    await once(upstream, 'listening');
    const front = await forkFront(name, (upstream.address() as AddressInfo).port);
    const client = await openRawConnection(front.port);
    const before = await front.memory();
    await client.write(frame('POST /up HTTP/1.1\r\nHost: s\r\n'));
    for (let i = 0; i < 100; i++) {
      if (how === 'in chunks') await client.write(`${megabyte.length.toString(16)}\r\n`);
      await client.write(megabyte);
      if (how === 'in chunks') await client.write('\r\n');
    }
    if (how === 'in chunks') await client.write('0\r\n\r\n');
    const response = await client.readResponse();
    expect([response.status, response.body.toString()]).toEqual([200, String(size)]);
    expect((await front.memory()).peak - before.now).toBeLessThan(allowedGrowth);
    client.close();
    front.end();
    upstream.close();
    upstream.closeAllConnections();
  });

  it.each([
    ['with a length', { 'Content-Length': String(size) }],
    ['in chunks', {}],
  ])('down, %s, to a client that reads slowly', async (_how, fields) => {
    const upstream = createServer(async (_incoming, response) => {
      response.writeHead(200, fields);
      for (let i = 0; i < 100; i++) if (!response.write(megabyte)) await once(response, 'drain');
      response.end();
    }).listen(0, '127.0.0.1');
    await once(upstream, 'listening');
    const front = await forkFront(name, (upstream.address() as AddressInfo).port);
    const client = await openRawConnection(front.port);
    client.socket.removeAllListeners('data');
    const before = await front.memory();
    let received = 0;
    client.socket.pause();
    void aWhile().then(() => client.socket.resume());
    client.socket.on('data', (chunk: Buffer) => {
      received += chunk.length;
      client.socket.pause();
      setImmediate(() => client.socket.resume());
    });
    await client.write('GET /down HTTP/1.1\r\nHost: s\r\nConnection: close\r\n\r\n');
    await once(client.socket, 'end');
    expect(received).toBeGreaterThan(size);
    expect((await front.memory()).peak - before.now).toBeLessThan(allowedGrowth);
    client.close();
    front.end();
    upstream.close();
    upstream.closeAllConnections();
  });
});
