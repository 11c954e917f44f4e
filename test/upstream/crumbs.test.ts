import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { UpstreamEngine } from '../../src/upstream/engine.ts';
import { engines } from '../harness/forwarding-front.ts';

const inChunks = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n';
const crumbs = 100_000;

/** Bodies whose every octet is a chunk of its own: what they cost goes by chunk. */
const bodies: readonly (readonly [string, string])[] = [
  ['chunks of one octet', '1\r\na\r\n'],
  ['with an extension', '1;a\r\na\r\n'],
  ['with sizes of many digits', '000001\r\na\r\n'],
];

/**
 * Chunks that one turn of the event loop takes of one connection: at most 1,024 before its last read, and those of that
 * read: one octet of body takes six on the wire, and a read is of 8 KiB (http-proxy-3, whose parser costs six
 * microseconds a chunk, and where one read more may be handed on in a turn than was read) or 64 KiB (llhttp, a fifth of one).
 */
const mostChunks: Record<string, number> = { 'http-proxy-3': 3 * 1_366, llhttp: 1_024 + 10_923 };

describe.each(engines)('what a turn takes of a body in crumbs ($name)', ({ name, createEngine }) => {
  let engine: UpstreamEngine;
  let text = '';
  const sockets = new Set<Socket>();
  const shop = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {}).on('data', () => socket.write(text, 'latin1'));
  });
  beforeAll(async () => {
    shop.listen(0, '127.0.0.1');
    await once(shop, 'listening');
    engine = createEngine({
      upstream: { scheme: 'http', hostname: '127.0.0.1', port: (shop.address() as AddressInfo).port },
      connectTimeoutMs: 30_000,
      connections: 2,
      queueLimit: 10,
      queueTimeoutMs: 60_000,
    });
  });
  afterAll(async () => {
    for (const socket of sockets) socket.destroy();
    shop.close();
    await engine.close();
  });

  /** Octets of body in the fullest turn; the reader waits before it begins, so that much of the body has come by then. */
  async function ask() {
    const turns: number[] = [0];
    const seen = { octets: 0, most: 0 };
    let isOver = false;
    const nextTurn = () => {
      turns.push(0);
      if (!isOver) setImmediate(nextTurn);
    };
    await new Promise<void>((resolve, reject) => {
      let isWaiting = true;
      const exchange = engine.dispatch(
        { method: 'GET', target: '/', fields: ['Host', 's'], body: null },
        {
          onHead() {},
          onData(octets) {
            turns[turns.length - 1] = (turns.at(-1) ?? 0) + octets.length;
            seen.octets += octets.length;
            if (!isWaiting) return true;
            isWaiting = false;
            setTimeout(() => {
              nextTurn();
              exchange.resume();
            }, 200);
            return false;
          },
          onEnd: resolve,
          onFault: ({ kind, cause }) => reject(new Error(kind, { cause })),
        },
      );
    });
    isOver = true;
    seen.most = Math.max(...turns);
    return seen;
  }

  it.each(bodies)('%s', async (_, chunk) => {
    text = `${inChunks}${chunk.repeat(crumbs)}0\r\n\r\n`;
    const { octets, most } = await ask();
    expect(octets).toBe(crumbs);
    console.info(`${name}: ${most} chunks in the fullest turn`);
    expect(most).toBeLessThanOrEqual(mostChunks[name] as number);
  });
});
