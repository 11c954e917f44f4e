import type { IncomingMessage } from 'node:http';
import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { readWholeBody } from '../../../src/upstream/request-body.ts';

const limits = { bodyLimitBytes: 10, bodyTimeoutMs: 4_000 };
const incomingOf = (stream: PassThrough) => stream as unknown as IncomingMessage;
const settled = () => new Promise((resolve) => setImmediate(resolve));

describe('a body that is read whole', () => {
  it.each([
    [{ length: 10 }, 'x'.repeat(10), 'x'.repeat(10)],
    [{ length: 11 }, '', 'payload-too-large undefined'],
    [{ length: 0 }, '', ''],
    ['none' as const, '', ''],
    ['chunked' as const, 'x'.repeat(10), 'x'.repeat(10)],
    ['chunked' as const, 'x'.repeat(11), 'payload-too-large undefined'],
  ])('announced as %j, of %j', async (body, sent, result) => {
    const stream = new PassThrough();
    const reading = readWholeBody(incomingOf(stream), body, limits);
    stream.end(sent);
    const read = await reading;
    expect(Buffer.isBuffer(read) ? String(read) : `${read.rejection} ${read.reason}`).toBe(result);
    for (const event of ['data', 'error']) expect(stream.listenerCount(event)).toBe(0);
  });

  it.each([
    ['before it is read', 0],
    ['in its middle', 1],
  ])('that breaks off %s is refused', async (_, when) => {
    const stream = new PassThrough();
    stream.on('error', () => {});
    const cut = { rejection: 'bad-request', reason: 'body-cut' };
    if (when === 0) {
      stream.destroy();
      expect(await readWholeBody(incomingOf(stream), 'chunked', limits)).toMatchObject(cut);
      return;
    }
    const reading = readWholeBody(incomingOf(stream), 'chunked', limits);
    stream.write('x');
    await settled();
    stream.destroy();
    expect(await reading).toMatchObject(cut);
  });
});
