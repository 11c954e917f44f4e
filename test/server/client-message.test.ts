import { createServer, type IncomingMessage, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { ClientMessage } from '../../src/server/client-connection.ts';
import { pumpBody } from '../../src/upstream/request-body-pump.ts';

/** What node's parser handed over, and in how many of them one turn of the event loop. */
let pieces = 0;
let mostInTurn = 0;
class CountedMessage extends ClientMessage {
  static inTurn = 0;
  override push(piece: Buffer | null): boolean {
    pieces += 1;
    if (CountedMessage.inTurn === 0) setImmediate(() => (CountedMessage.inTurn = 0));
    CountedMessage.inTurn += 1;
    mostInTurn = Math.max(mostInTurn, CountedMessage.inTurn);
    return super.push(piece);
  }
}

let server: Server;
let client: Socket;
afterEach(() => {
  client.destroy();
  server.closeAllConnections();
  server.close();
});

/** The request that `head` and what the caller writes make. */
async function receive(head: string): Promise<IncomingMessage> {
  pieces = 0;
  mostInTurn = 0;
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
const crumbs = Buffer.from('1\r\na\r\n'.repeat(octets));

describe('a body in chunks of one octet', () => {
  it('reaches its reader in few pieces, a bounded number of chunks in a turn', async () => {
    const incoming = await receive(chunked);
    client.write(crumbs);
    client.write('0\r\n\r\n');
    const read: Buffer[] = [];
    for await (const piece of incoming) read.push(piece);
    expect(Buffer.concat(read).equals(Buffer.alloc(octets, 'a'))).toBe(true);
    expect(pieces).toBe(octets + 1);
    // One read of node's is 64 KiB, six octets a chunk; without a bound all that has arrived is parsed in one turn.
    expect(mostInTurn).toBeLessThan(12_000);
    expect(read.length).toBeLessThan(octets / 1_000);
  });

  it.each([
    ['nobody reads', () => {}],
    [
      'its reader has paused',
      (incoming: IncomingMessage) => void incoming.on('data', () => incoming.pause()),
    ],
    [
      'nobody takes what goes on',
      (incoming: IncomingMessage) =>
        void pumpBody(
          incoming,
          undefined,
          { write: () => false, end() {} },
          { onWritten() {}, onBroken() {} },
        ),
    ],
  ])('waits as few octets in few pieces while %s', async (_, begin) => {
    const incoming = await receive(chunked);
    begin(incoming);
    client.write(crumbs);
    await sleep(300);
    for (let i = 0; i < 500 && client.writableLength === 0; i++) {
      client.write('1\r\na\r\n');
      await sleep(0);
    }
    const { length, buffer } = (
      incoming as unknown as { _readableState: { length: number; buffer: Buffer[] } }
    )._readableState;
    expect(length).toBeLessThan(100_000);
    expect(buffer.length).toBeLessThan(16);
    // The rest waits with its sender.
    expect(pieces).toBeLessThan(60_000);
  });
});

it('a body of few octets a packet waits in one piece, and arrives whole', async () => {
  const incoming = await receive('Content-Length: 600');
  for (let i = 0; i < 500; i++) {
    client.write('b');
    if (i % 5 === 0) await sleep(1);
  }
  await sleep(50);
  const { buffer } = (incoming as unknown as { _readableState: { buffer: Buffer[] } })._readableState;
  expect(buffer.length).toBeLessThan(3);
  client.write('b'.repeat(100));
  const read: Buffer[] = [];
  for await (const piece of incoming) read.push(piece);
  expect(Buffer.concat(read).toString()).toBe('b'.repeat(600));
});

it('large pieces keep their order among small ones', async () => {
  const incoming = await receive(chunked);
  const parts = Array.from({ length: 60 }, (_, i) =>
    String.fromCharCode(97 + (i % 26)).repeat([1, 5_000, 700, 20_000][i % 4] as number),
  );
  for (const part of parts) client.write(`${part.length.toString(16)}\r\n${part}\r\n`);
  client.write('0\r\n\r\n');
  const read: Buffer[] = [];
  for await (const piece of incoming) read.push(piece);
  expect(Buffer.concat(read).toString()).toBe(parts.join(''));
});
