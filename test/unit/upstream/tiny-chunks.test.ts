import { createServer } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { UpstreamClient } from '../../../src/upstream/port.ts';
import { listen } from '../../harness/listen.ts';
import { clientOf } from './direct-client.ts';

const inChunks = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n';
const chunks = 40_000;

/** Bodies of one-byte chunks, whose cost depends on the number of chunks. */
const bodies: readonly (readonly [string, string])[] = [
  ['chunks of one octet', '1\r\na\r\n'],
  ['with an extension', '1;a\r\na\r\n'],
  ['with sizes of many digits', '000001\r\na\r\n'],
];

/** Limit of chunks per tick and connection: 1,024, and those of one more read of 64 KiB. */
const maxChunks = 1_024 + 10_923;

describe('a tick of the event loop reads a bounded number of chunks', () => {
  let client: UpstreamClient;
  let closeShop: () => Promise<void>;
  let text = '';
  const shop = createServer((socket) => {
    socket.on('error', () => {}).on('data', () => socket.write(text, 'latin1'));
  });
  beforeAll(async () => {
    const { port, close } = await listen(shop);
    closeShop = close;
    client = clientOf(port);
  });
  afterAll(async () => {
    await closeShop();
    await client.close();
  });

  /** Octets of the body, in all and in the fullest tick. The reader waits first, so that much of the body has arrived. */
  async function ask() {
    const ticks: number[] = [0];
    const seen = { octets: 0, most: 0 };
    let isOver = false;
    const nextIteration = () => {
      ticks.push(0);
      if (!isOver) setImmediate(nextIteration);
    };
    await new Promise<void>((resolve, reject) => {
      let isWaiting = true;
      const exchange = client.dispatch(
        { method: 'GET', target: '/', fields: ['Host', 's'], body: null },
        {
          onHead() {},
          onData(octets) {
            ticks[ticks.length - 1] = (ticks.at(-1) ?? 0) + octets.length;
            seen.octets += octets.length;
            if (!isWaiting) return true;
            isWaiting = false;
            setTimeout(() => {
              nextIteration();
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
    seen.most = Math.max(...ticks);
    return seen;
  }

  it.each(bodies)('%s', async (_, chunk) => {
    text = `${inChunks}${chunk.repeat(chunks)}0\r\n\r\n`;
    const { octets, most } = await ask();
    expect(octets).toBe(chunks);
    expect(most).toBeLessThanOrEqual(maxChunks);
  });
});
