import http, { type IncomingMessage } from 'node:http';
import { createServer, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { afterEach, describe, expect, it } from 'vitest';
import { GatheredPieces, gatherPiecesOf, waitingBytes, wholeBytes } from '../../src/lib/gathered-pieces.ts';

const octets = 200_000;
const crumbs = `${'1\r\na\r\n'.repeat(octets)}0\r\n\r\n`;

let close: () => void = () => {};
afterEach(() => close());

/** A response of node's own client with a body in chunks of one octet. */
async function receive(): Promise<IncomingMessage> {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.once('data', () => socket.write(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${crumbs}`));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  close = () => {
    for (const socket of sockets) socket.destroy();
    server.close();
  };
  const { port } = server.address() as { port: number };
  return new Promise((resolve) => {
    http.get({ port, host: '127.0.0.1', agent: false }, (response) => {
      countPieces(response);
      gatherPiecesOf(response);
      resolve(response);
    });
  });
}

let mostInTurn = 0;
/** What node's parser hands over in one turn of the event loop. */
function countPieces(response: IncomingMessage): void {
  let inTurn = 0;
  mostInTurn = 0;
  const parser = (response.socket as unknown as { parser: { [callback: number]: (piece: Buffer) => void } })
    .parser;
  // kOnBody of node's parser.
  const onBody = parser[3] as (piece: Buffer) => void;
  parser[3] = function count(this: unknown, piece: Buffer) {
    if (inTurn === 0) setImmediate(() => (inTurn = 0));
    inTurn += 1;
    mostInTurn = Math.max(mostInTurn, inTurn);
    onBody.call(this, piece);
  };
}

describe('an answer in chunks of one octet', () => {
  it('reaches its reader in few pieces, a bounded number of chunks in a turn', async () => {
    const response = await receive();
    const read: Buffer[] = [];
    for await (const piece of response) read.push(piece);
    expect(Buffer.concat(read).equals(Buffer.alloc(octets, 'a'))).toBe(true);
    expect(read.length).toBeLessThan(octets / 1_000);
    // One or two reads of node's, 64 KiB each, six octets a chunk; without a bound all that has arrived.
    expect(mostInTurn).toBeGreaterThan(1_000);
    expect(mostInTurn).toBeLessThan(24_000);
  });

  it('waits in one piece for a reader that takes its time', async () => {
    const response = await receive();
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(response.readableLength).toBeLessThan(100_000);
    let length = 0;
    response.on('data', (piece: Buffer) => {
      length += piece.length;
    });
    await new Promise((resolve) => response.on('end', resolve));
    expect(length).toBe(octets);
  });
});

/** What a message that is read in the test makes of small pieces: the lengths of what is handed on. */
function gather() {
  const stream = new Readable({ read() {}, highWaterMark: waitingBytes });
  const lengths: number[] = [];
  const pieces = new GatheredPieces(stream, (octets) => {
    lengths.push(octets.length);
    return stream.push(octets);
  });
  const add = (length: number, letter = 'a') => pieces.add(Buffer.alloc(length, letter));
  return { stream, pieces, lengths, add };
}
const turn = () => new Promise((resolve) => setImmediate(resolve));

describe('small pieces', () => {
  it('of one turn are handed on at its end, in their order, also where there is only one', async () => {
    const { stream, lengths, add } = gather();
    add(1);
    expect(lengths).toEqual([]);
    await turn();
    expect(lengths).toEqual([1]);
    expect(String(stream.read())).toBe('a');
    add(1, 'b');
    add(600, 'c');
    add(1_500, 'd');
    add(2, 'e');
    await turn();
    expect(lengths).toEqual([1, 2_103]);
    expect(String(stream.read())).toBe(`b${'c'.repeat(600)}${'d'.repeat(1_500)}ee`);
  });

  it('wait together while others wait for the reader, and are there when it comes', async () => {
    const { stream, pieces, lengths, add } = gather();
    stream.push('before');
    add(3);
    await turn();
    pieces.beforeRead();
    expect(lengths).toEqual([]);
    stream.read();
    pieces.beforeRead();
    expect(lengths).toEqual([3]);
    pieces.beforeRead();
    expect(lengths).toEqual([3]);
  });

  it('of a message that has ended are nobody’s', async () => {
    const { stream, lengths, add } = gather();
    add(3);
    stream.destroy();
    await turn();
    expect(lengths).toEqual([]);
  });

  it('are handed on at 16 KiB, whatever the last one brings with it', () => {
    const { stream, lengths, add } = gather();
    for (const letter of 'bcde') add(wholeBytes - 1, letter);
    add(3, 'f');
    expect(lengths).toEqual([]);
    add(wholeBytes - 1, 'g');
    expect(lengths).toEqual([16_383 + 4_095]);
    const letters = [...'bcde'].map((letter) => letter.repeat(4_095)).join('');
    expect(String(stream.read())).toBe(`${letters}fff${'g'.repeat(4_095)}`);
    for (let i = 0; i < 4; i += 1) add(wholeBytes - 1);
    add(4);
    expect(lengths.at(-1)).toBe(16_384);
  });

  it('1,024 of them in a turn stop the reading of the socket', async () => {
    const { add } = gather();
    const answers = Array.from({ length: 1_024 }, () => add(1));
    expect(answers.indexOf(false)).toBe(1_023);
    await turn();
    expect(add(1)).toBe(true);
  });

  it('and so do 32 KiB that wait, of whatever size', () => {
    const { stream, add } = gather();
    stream.push(Buffer.alloc(waitingBytes - 2));
    expect([add(1), add(1)]).toEqual([true, false]);
  });
});

describe('pieces of a message', () => {
  it('stop the reading of its socket from 32 KiB that wait, also where they are large', () => {
    const message = new Readable({ read() {}, highWaterMark: 1_048_576 });
    gatherPiecesOf(message);
    expect(message.push(Buffer.alloc(waitingBytes - wholeBytes))).toBe(true);
    expect(message.push(Buffer.alloc(wholeBytes))).toBe(false);
  });

  it('of 4 KiB go on by themselves, after what was gathered before them', async () => {
    const message = new Readable({ read() {} });
    gatherPiecesOf(message);
    message.push(Buffer.alloc(1, 'a'));
    message.push(Buffer.alloc(wholeBytes - 1, 'b'));
    expect(message.readableLength).toBe(0);
    message.push(Buffer.alloc(wholeBytes, 'c'));
    expect(message.readableLength).toBe(2 * wholeBytes);
    message.push(Buffer.alloc(1, 'd'));
    message.push(null);
    const read: Buffer[] = [];
    for await (const piece of message) read.push(piece);
    const all = `a${'b'.repeat(wholeBytes - 1)}${'c'.repeat(wholeBytes)}d`;
    expect(Buffer.concat(read).toString()).toBe(all);
  });
});
