import { fork } from 'node:child_process';
import { once } from 'node:events';
import http, { type IncomingMessage } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Readable, Writable } from 'node:stream';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { octetsTaken, untilStill } from '../../harness/until-still.ts';

const piece = Buffer.alloc(65_536, 'a');
const size = 1_600 * piece.length;
/** Growth of the bytes in use that a body held in memory would pass by far. */
const allowedGrowth = 40 * 1_048_576;

interface Front {
  readonly port: number;
  /** Bytes in use after garbage collection. */
  memory(): Promise<number>;
  /** Resolves when its event loop has come round. */
  turn(): Promise<unknown>;
  close(): void;
}

/** The front in a process of its own, so that its memory is nobody else's. */
async function forkFront(upstreamPort: number): Promise<Front> {
  const child = fork(new URL('../../harness/front-process.ts', import.meta.url), [String(upstreamPort)], {
    execArgv: ['--expose-gc'],
  });
  const [port] = (await once(child, 'message')) as [number];
  const ask = async (message: string) => {
    child.send(message);
    return ((await once(child, 'message')) as [number])[0];
  };
  return { port, memory: () => ask('memory'), turn: () => ask('turn'), close: () => child.kill() };
}

/** A shop whose answers each test gives itself. */
class Shop {
  listener: http.RequestListener = (_incoming, response) => response.end();
  readonly #server = http.createServer((incoming, response) => {
    // The next test begins on a connection of its own.
    response.shouldKeepAlive = false;
    this.listener(incoming, response);
  });

  async start(): Promise<number> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return (this.#server.address() as AddressInfo).port;
  }

  /** Whatever is under way ends. */
  cut(): void {
    this.#server.closeAllConnections();
  }

  close(): void {
    this.#server.close();
    this.cut();
  }
}

/** A piece a turn at most, and no more than it may. */
class SlowReader {
  received = 0;
  readonly #stream: Readable;
  #mayReceive = 0;

  constructor(stream: Readable) {
    this.#stream = stream;
    stream.pause().on('data', (chunk: Buffer) => {
      this.received += chunk.length;
      stream.pause();
      setImmediate(() => this.#goOn());
    });
  }

  readUntil(octets: number): void {
    this.#mayReceive = octets;
    this.#goOn();
  }

  #goOn(): void {
    if (this.received < this.#mayReceive) this.#stream.resume();
  }
}

/** Writes a whole body, as fast as it is taken. */
async function writeAll(stream: Writable): Promise<void> {
  for (let left = size; left > 0; left -= piece.length) {
    if (!stream.write(piece)) await once(stream, 'drain');
  }
  stream.end();
}

/** Lets the reader wait at its start and in the middle; each time the writer has to wait, too, and memory stays flat. */
async function expectFlat(front: Front, atRest: number, reader: SlowReader, writer: Socket): Promise<void> {
  for (const received of [0, size / 4]) {
    reader.readUntil(received);
    await expect.poll(() => reader.received, { timeout: 60_000 }).toBeGreaterThanOrEqual(received);
    const taken = () => octetsTaken([writer]);
    await untilStill(front.turn, taken);
    expect(taken(), 'octets that the writer could get rid of').toBeLessThan(size);
    expect((await front.memory()) - atRest).toBeLessThan(allowedGrowth);
  }
  // Past the last octet, so that the end is read, too.
  reader.readUntil(Number.POSITIVE_INFINITY);
}

describe('100 MB at flat memory', () => {
  const shop = new Shop();
  let front: Front;
  beforeAll(async () => {
    front = await forkFront(await shop.start());
  });
  // So that a test that failed leaves nothing to the next one.
  afterEach(() => shop.cut());
  afterAll(() => {
    front.close();
    shop.close();
  });

  it.each([
    ['with a length', { 'Content-Length': size }],
    ['in chunks', {}],
  ])('up, %s, to an upstream that reads slowly', async (_, headers) => {
    const arrived = Promise.withResolvers<SlowReader>();
    shop.listener = (incoming, response) => {
      const reader = new SlowReader(incoming);
      incoming.on('end', () => response.end(String(reader.received)));
      arrived.resolve(reader);
    };
    const atRest = await front.memory();
    const { port } = front;
    const request = http.request({ port, host: '127.0.0.1', method: 'POST', headers, agent: false });
    const answered = once(request, 'response').then(async ([response]: IncomingMessage[]) => {
      if (response === undefined) throw new Error('no response');
      expect([response.statusCode, await text(response)]).toEqual([200, String(size)]);
    });
    const [socket] = await once(request, 'socket');
    const flat = arrived.promise.then((reader) => expectFlat(front, atRest, reader, socket));
    // What breaks first is what the test fails with; what breaks when it ends is heard, too, and says nothing new.
    await Promise.all([answered, writeAll(request), flat]);
  });

  it.each([
    ['with a length', { 'Content-Length': size }],
    ['in chunks', {}],
  ])('down, %s, to a client that reads slowly', async (_, headers) => {
    const asked = Promise.withResolvers<Socket>();
    const written = Promise.withResolvers<void>();
    shop.listener = (_incoming, response) => {
      if (response.socket === null) throw new Error('the front is no longer connected');
      asked.resolve(response.socket);
      response.writeHead(200, headers);
      written.resolve(writeAll(response));
    };
    const atRest = await front.memory();
    const request = http.get({ port: front.port, host: '127.0.0.1', agent: false });
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    const reader = new SlowReader(response);
    const ended = once(response, 'end');
    await Promise.all([written.promise, expectFlat(front, atRest, reader, await asked.promise), ended]);
    expect(reader.received).toBe(size);
  });
});

async function text(response: IncomingMessage): Promise<string> {
  let all = '';
  for await (const chunk of response) all += chunk;
  return all;
}
