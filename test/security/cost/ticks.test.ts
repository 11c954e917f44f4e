import { hash } from 'node:crypto';
import * as zlib from 'node:zlib';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { RawResponse } from '../../harness/raw-client.ts';
import { openStage, type Stage } from './stage.ts';

let stage: Stage;
beforeAll(async () => {
  stage = await openStage();
});
afterAll(() => stage.close());

/** Most CPU time of the serving thread in one tick of its event loop, until 100 ticks after `run`. */
async function longestTickMs(run: () => Promise<unknown>): Promise<number> {
  let longest = 0;
  let ticksLeft = Number.POSITIVE_INFINITY;
  const { promise, resolve } = Promise.withResolvers<void>();
  const measure = (before: NodeJS.CpuUsage) => {
    const { user, system } = process.threadCpuUsage(before);
    longest = Math.max(longest, (user + system) / 1000);
    ticksLeft -= 1;
    if (ticksLeft < 0) resolve();
    else setImmediate(measure, process.threadCpuUsage());
  };
  setImmediate(measure, process.threadCpuUsage());
  await run();
  ticksLeft = 100;
  await promise;
  return longest;
}

const zeros = Buffer.alloc(32_000_000, '0');

/** CPU time of this thread to decode and hash the body at once. */
function atOnceMs(decode: (body: Buffer) => Buffer, body: Buffer): number {
  const before = process.threadCpuUsage();
  hash('sha256', decode(body));
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}

it.each([
  ['gzip', zlib.gzipSync(zeros), zlib.gunzipSync],
  ['deflate', zlib.deflateSync(zeros), zlib.inflateSync],
  ['br', zlib.brotliCompressSync(zeros), zlib.brotliDecompressSync],
  ['zstd', zlib.zstdCompressSync(zeros), zlib.zstdDecompressSync],
])('32 MB of zeros in %s: no tick of the event loop takes half the CPU', async (coding, body, decode) => {
  const fields = `Content-Type: application/json\r\nContent-Encoding: ${coding}\r\n`;
  const head = `HTTP/1.1 200 OK\r\n${fields}Content-Length: ${body.length}\r\n\r\n`;
  stage.answerWith(Buffer.concat([Buffer.from(head), body]), true);
  let [tickMs, wholeMs] = [Number.MAX_VALUE, Number.MAX_VALUE];
  for (let run = 0; run < 24 && tickMs >= wholeMs / 2; run += 1) {
    wholeMs = Math.min(wholeMs, atOnceMs(decode, body));
    let answer: RawResponse | undefined;
    const tick = await longestTickMs(async () => {
      answer = await stage.send(`GET /carts/1 HTTP/1.1\r\nHost: shop.example\r\n${stage.authorization}\r\n`);
    });
    expect([answer?.status, answer?.field('etag')]).toEqual([200, expect.any(String)]);
    tickMs = Math.min(tickMs, tick);
  }
  expect(tickMs).toBeLessThan(wholeMs / 2);
});
