import { createServer, type IncomingMessage, type Server } from 'node:http';
import { type AddressInfo, connect, Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { ClientMessage } from '../../../src/server/client-message.ts';
import { readWholeBody } from '../../../src/upstream/request-body.ts';

/** Chunks that node's parser passed on, and the most in one tick of the event loop. */
let chunks = 0;
let mostInTick = 0;
class CountedMessage extends ClientMessage {
  static inTick = 0;
  override push(chunk: Buffer | null): boolean {
    chunks += 1;
    if (CountedMessage.inTick === 0) setImmediate(() => (CountedMessage.inTick = 0));
    CountedMessage.inTick += 1;
    mostInTick = Math.max(mostInTick, CountedMessage.inTick);
    return super.push(chunk);
  }
}

let server: Server;
let client: Socket;
afterEach(() => {
  client.destroy();
  server.closeAllConnections();
  server.close();
});

/** The request with this head. The caller writes the rest. */
async function receive(head: string): Promise<IncomingMessage> {
  chunks = 0;
  mostInTick = 0;
  server = createServer({ IncomingMessage: CountedMessage });
  const incoming = new Promise<IncomingMessage>((resolve) => server.on('request', resolve));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  client = connect((server.address() as AddressInfo).port, '127.0.0.1').setNoDelay(true);
  client.on('error', () => {});
  client.write(`POST / HTTP/1.1\r\nHost: s\r\n${head}\r\n\r\n`);
  return incoming;
}

const chunked = 'Transfer-Encoding: chunked';
const octets = 200_000;
const oneOctetChunks = Buffer.from('1\r\na\r\n'.repeat(octets));

it('a body in chunks of one octet reaches its reader in few chunks, and a bounded number is parsed per tick', async () => {
  const incoming = await receive(chunked);
  client.write(oneOctetChunks);
  client.write('0\r\n\r\n');
  const read: Buffer[] = [];
  for await (const chunk of incoming) read.push(chunk);
  expect(Buffer.concat(read).equals(Buffer.alloc(octets, 'a'))).toBe(true);
  expect(chunks).toBe(octets + 1);
  // Node reads 64 KiB at once, six octets per chunk. Without the bound, one tick would parse all that has arrived.
  expect(mostInTick).toBeLessThan(12_000);
  expect(read.length).toBeLessThan(octets / 1_000);
});

it('large chunks keep their order among small ones', async () => {
  const incoming = await receive(chunked);
  const parts = Array.from({ length: 60 }, (_, i) =>
    String.fromCharCode(97 + (i % 26)).repeat([1, 5_000, 700, 20_000][i % 4] as number),
  );
  for (const part of parts) client.write(`${part.length.toString(16)}\r\n${part}\r\n`);
  client.write('0\r\n\r\n');
  const read: Buffer[] = [];
  for await (const chunk of incoming) read.push(chunk);
  expect(Buffer.concat(read).toString()).toBe(parts.join(''));
});

describe('a body that may have come with its head', () => {
  const early = (incoming: IncomingMessage) =>
    new Promise<Buffer | undefined>((resolve) => (incoming as ClientMessage).readEarly(resolve));
  const readAll = async (incoming: IncomingMessage) => {
    const read: Buffer[] = [];
    for await (const chunk of incoming) read.push(chunk);
    return Buffer.concat(read).toString();
  };

  /** The early body of the first request in these octets, and the request for its stream. */
  function ask(sent: string, more: { afterwards?: () => void; isReadTwice?: boolean } = {}) {
    server = createServer({ IncomingMessage: CountedMessage });
    const asked = new Promise<{ incoming: IncomingMessage; given?: unknown; again?: unknown }>((resolve) =>
      server.once('request', async (incoming) => {
        const both = [early(incoming), more.isReadTwice ? early(incoming) : undefined];
        const [given, again] = await Promise.all(both);
        resolve({ incoming, given: given?.toString(), again });
      }),
    );
    server.listen(0, '127.0.0.1', () => {
      client = connect((server.address() as AddressInfo).port, '127.0.0.1', () => {
        client.write(sent);
        more.afterwards?.();
      });
      client.setNoDelay(true).on('error', () => {});
    });
    return asked;
  }
  const post = (length: number, body: string) =>
    `POST / HTTP/1.1\r\nHost: s\r\nContent-Length: ${length}\r\n\r\n${body}`;

  it.each(['x', 'x'.repeat(5_000)])('is given early, without a stream', async (body) => {
    const { incoming, given } = await ask(post(body.length, body));
    expect(given).toBe(body);
    for (const event of ['data', 'end', 'close']) expect(incoming.listenerCount(event)).toBe(0);
    expect(incoming.readableFlowing).toBe(null);
    expect(await readAll(incoming)).toBe('');
  });

  it('is an error for a second reader, not an empty body', async () => {
    const { incoming, given } = await ask(post(4, 'abcd'));
    const limits = { bodyLimitBytes: 10, bodyTimeoutMs: 60_000 };
    expect([given, await readWholeBody(incoming, { length: 4 }, limits)]).toMatchObject([
      'abcd',
      { rejection: 'bad-request', reason: 'body-cut' },
    ]);
  });

  it('is given to the first of two readers in one tick', async () => {
    expect(await ask(post(2, 'ab'), { isReadTwice: true })).toMatchObject({ given: 'ab', again: undefined });
  });

  const long = Array.from({ length: 200_000 }, (_, i) => i % 10).join('');
  it.each([
    ['the rest comes later', 'abcd', 2],
    ['no octet came', 'ab', 0],
    ['it takes more than one read', long, long.length],
  ])('is a stream if %s', async (_, body, sent) => {
    const { incoming, given } = await ask(post(body.length, body.slice(0, sent)));
    expect(given).toBeUndefined();
    client.write(body.slice(sent));
    expect(await readAll(incoming)).toBe(body);
  });

  it('is a stream if it is requested after its first octets', async () => {
    const incoming = new ClientMessage(new Socket());
    incoming.push(Buffer.from('ab'));
    const given: unknown[] = [];
    incoming.readEarly((whole) => void given.push(whole));
    incoming.push(Buffer.from('cd'));
    incoming.push(null);
    expect(given).toEqual([undefined]);
    expect(await readAll(incoming)).toBe('abcd');
  });

  it('is neither early nor complete if the connection breaks', async () => {
    const { incoming, given } = await ask(post(4, 'ab'), { afterwards: () => client.resetAndDestroy() });
    expect(given).toBeUndefined();
    while (!incoming.destroyed) await sleep(1);
    expect(incoming.complete).toBe(false);
  });
});
