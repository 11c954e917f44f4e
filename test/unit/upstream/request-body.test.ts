import type { IncomingMessage, ServerResponse } from 'node:http';
import { PassThrough } from 'node:stream';
import { describe, expect, it, vi } from 'vitest';
import { readWholeBody, sendContinue } from '../../../src/upstream/request-body.ts';

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
    [{ length: 1 }, 1],
    [{ length: 0 }, 0],
    [{ length: 11 }, 0],
    ['none' as const, 0],
  ])('announced as %j is asked for %i times', async (body, times) => {
    const stream = new PassThrough();
    const ask = vi.fn();
    const reading = readWholeBody(incomingOf(stream), body, limits, ask);
    stream.end('x');
    await reading;
    expect(ask).toHaveBeenCalledTimes(times);
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

it.each([
  [true, false, false, 1],
  [false, false, false, 0],
  [true, true, false, 0],
  [true, false, true, 0],
])('expects 100: %s, answer begun: %s, client gone: %s; 100 Continue sent %i times', (...all) => {
  const [expectsContinue, headersSent, destroyed, times] = all;
  const writeContinue = vi.fn();
  sendContinue(
    { expectsContinue } as never,
    { headersSent, destroyed, writeContinue } as unknown as ServerResponse,
  );
  expect(writeContinue).toHaveBeenCalledTimes(times);
});
