import http, { type IncomingMessage } from 'node:http';
import { createServer, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { gatherPiecesOf } from '../../src/lib/gathered-pieces.ts';

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
