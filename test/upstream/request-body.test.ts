import type { IncomingMessage, ServerResponse } from 'node:http';
import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { CollectedBody, readWholeBody, sendContinue, watchBody } from '../../src/upstream/request-body.ts';

const limits = { bodyLimitBytes: 10, bodyTimeoutMs: 4_000, bodyBytesPerSecond: 2 };
const incomingOf = (stream: PassThrough) => stream as unknown as IncomingMessage;
const settled = () => new Promise((resolve) => setImmediate(resolve));

describe('a body that is collected', () => {
  it('of one piece is that piece, not a copy', () => {
    const collected = new CollectedBody(100);
    const piece = Buffer.from('abc');
    collected.add(piece);
    expect([collected.length, collected.octets().buffer === piece.buffer]).toEqual([3, true]);
  });

  it('of many pieces is all of them in their order', () => {
    const collected = new CollectedBody(30_000);
    const pieces = Array.from({ length: 300 }, (_, i) => Buffer.alloc(i % 200, `${i % 10}`));
    for (const piece of pieces) collected.add(piece);
    const whole = Buffer.concat(pieces);
    expect(collected.length).toBe(whole.length);
    expect(collected.octets().equals(whole)).toBe(true);
  });

  it('takes no more room than it may become', () => {
    const collected = new CollectedBody(20);
    collected.add(Buffer.alloc(5));
    collected.add(Buffer.alloc(5));
    expect(collected.octets().buffer.byteLength).toBe(20);
  });
});

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

describe('a body that is watched', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] }));
  afterEach(() => void vi.useRealTimers());

  function watch(more: Partial<typeof limits> = {}) {
    const stream = new PassThrough();
    const refused: string[] = [];
    let progress = 0;
    const stop = watchBody(
      incomingOf(stream),
      { ...limits, ...more },
      ({ rejection }) => void refused.push(rejection),
      () => {
        progress += 1;
      },
    );
    const receive = (bytes: number) => stream.emit('data', Buffer.alloc(bytes));
    return { stream, refused, stop, receive, progress: () => progress };
  }

  it('is not read by that', () => {
    const { stream } = watch();
    expect(stream.isPaused()).toBe(true);
  });

  it('is refused with the octet that is too much, once', () => {
    const { refused, receive, progress } = watch();
    receive(10);
    expect([refused, progress()]).toEqual([[], 1]);
    receive(1);
    receive(1);
    vi.advanceTimersByTime(100_000);
    expect([refused, vi.getTimerCount()]).toEqual([['payload-too-large'], 0]);
  });

  it('is refused when nothing comes for its time', () => {
    const { stream, refused } = watch();
    stream.resume();
    vi.advanceTimersByTime(3_999);
    expect(refused).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(refused).toEqual(['request-timeout']);
  });

  it('earns time with its octets, and no more than it had at first', () => {
    const { stream, refused, receive } = watch({ bodyLimitBytes: 1_000 });
    stream.resume();
    vi.advanceTimersByTime(3_000);
    // Two octets account for a second.
    receive(2);
    vi.advanceTimersByTime(1_000);
    expect(refused).toEqual([]);
    receive(500);
    vi.advanceTimersByTime(3_000);
    expect(refused).toEqual([]);
    vi.advanceTimersByTime(1_000);
    expect(refused).toEqual(['request-timeout']);
  });

  it('is not slow while its reader has paused', () => {
    const { stream, refused } = watch();
    stream.pause();
    vi.advanceTimersByTime(100_000);
    expect(refused).toEqual([]);
  });

  it('is watched no more after its end, and when nobody wants it', () => {
    const one = watch();
    one.stream.emit('end');
    const other = watch();
    other.stop();
    other.receive(100);
    expect([one.refused, other.refused, vi.getTimerCount()]).toEqual([[], [], 0]);
  });

  it('costs 500 octets a second where nothing else is said', () => {
    const { stream, refused, receive } = watch({
      bodyLimitBytes: 10_000,
      bodyBytesPerSecond: undefined as never,
    });
    stream.resume();
    vi.advanceTimersByTime(3_000);
    receive(499);
    vi.advanceTimersByTime(1_000);
    expect(refused).toEqual([]);
    vi.advanceTimersByTime(1_000);
    expect(refused).toEqual(['request-timeout']);
  });
});

it.each([
  [true, false, false, 1],
  [false, false, false, 0],
  [true, true, false, 0],
  [true, false, true, 0],
])('100 is sent to who waits for it (%s), unless an answer has begun (%s) or it left (%s)', (...all) => {
  const [expectsContinue, headersSent, destroyed, times] = all;
  const writeContinue = vi.fn();
  sendContinue(
    { expectsContinue } as never,
    { headersSent, destroyed, writeContinue } as unknown as ServerResponse,
  );
  expect(writeContinue).toHaveBeenCalledTimes(times);
});
