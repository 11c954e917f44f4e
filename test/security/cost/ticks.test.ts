import { hash } from 'node:crypto';
import * as zlib from 'node:zlib';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openRawConnection, type RawResponse } from '../../harness/raw-client.ts';
import { openStage, type Stage } from './stage.ts';

let stage: Stage;
beforeAll(async () => {
  stage = await openStage();
});
afterAll(() => stage.close());

const cpuMs = (before?: NodeJS.CpuUsage) => {
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
};

/** Maximum CPU time of the serving thread in one tick of its event loop, until 100 ticks after `run`. */
async function longestTickMs(run: () => Promise<unknown>): Promise<number> {
  let longest = 0;
  let ticksLeft = Number.POSITIVE_INFINITY;
  const { promise, resolve } = Promise.withResolvers<void>();
  const measure = (before: NodeJS.CpuUsage) => {
    longest = Math.max(longest, cpuMs(before));
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
  return cpuMs(before);
}

it.each([
  ['gzip', zlib.gzipSync(zeros), zlib.gunzipSync],
  ['deflate', zlib.deflateSync(zeros), zlib.inflateSync],
  ['br', zlib.brotliCompressSync(zeros), zlib.brotliDecompressSync],
  ['zstd', zlib.zstdCompressSync(zeros), zlib.zstdDecompressSync],
])('32 MB of zeros in %s: no tick takes half the CPU of decoding at once', async (coding, body, decode) => {
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

it('80 bodies of 10,000 chunks of one octet, sent at once: all get 200, no tick takes a quarter of the CPU', async () => {
  stage.answerWith('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok', true);
  const head = 'POST /stores HTTP/1.1\r\nHost: shop.example\r\nTransfer-Encoding: chunked\r\n\r\n';
  const octets = `${head}${'1\r\na\r\n'.repeat(10_000)}0\r\n\r\n`;
  const clients = await Promise.all(Array.from({ length: 80 }, () => openRawConnection(stage.port)));
  // Now all are accepted.
  for (const client of clients) {
    await client.write('GET /stores HTTP/1.1\r\nHost: shop.example\r\n\r\n');
    await client.readResponse();
  }
  const before = process.threadCpuUsage();
  let answers: RawResponse[] = [];
  const tickMs = await longestTickMs(async () => {
    const writes = clients.map((client) => client.write(octets));
    // All octets arrive while the event loop stands still, so all connections are readable in its next tick.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300);
    await Promise.all(writes);
    answers = await Promise.all(clients.map((client) => client.readResponse()));
  });
  for (const client of clients) client.close();
  expect(answers.map(({ status }) => status)).toEqual(clients.map(() => 200));
  expect(tickMs).toBeLessThan(cpuMs(before) / 4);
});
