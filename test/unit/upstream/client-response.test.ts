import { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Writable } from 'node:stream';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { ClientResponse } from '../../../src/upstream/client-response.ts';

afterEach(() => void vi.useRealTimers());

describe('a client that reads slowly', () => {
  /** Milliseconds until the client is cut, at most 300,000, if it reads this many octets each time. */
  async function timeOf(octets: number, everyMs: number): Promise<number> {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    let taken: () => void = () => {};
    const socket = new Writable({
      highWaterMark: 1,
      write(_chunk, _encoding, done) {
        taken = done;
      },
    });
    const incoming = Object.assign(new IncomingMessage(socket as Socket), {
      method: 'GET',
      httpVersion: '1.1',
    });
    const response = new ServerResponse(incoming);
    response.assignSocket(socket as Socket);
    const events = { onDrain: () => void client.write(Buffer.alloc(octets)), onGone: () => {} };
    const slow = { writeStallTimeoutMs: 60_000, bodyTimeoutMs: 20_000 };
    const client = new ClientResponse(incoming, response, slow, events);
    client.begin(200, 'OK', []);
    for (let i = 0; i < 3; i += 1) client.write(Buffer.alloc(5_000));
    let ms = 0;
    for (; ms < 300_000 && !response.destroyed; ms += 100) {
      vi.advanceTimersByTime(100);
      if (octets > 0 && ms % everyMs === 0) taken();
      await new Promise((resolve) => process.nextTick(resolve));
    }
    return ms;
  }

  it.each([
    ['nothing', 0, 0, 60_000],
    ['half of the required rate', 1_000, 500, 120_000],
    ['more than that rate', 5_000, 1_000, 300_000],
    ['64 KB/s, which a kernel shows every 22 s', 700_000, 11_000, 300_000],
  ])('takes %s, and is cut as expected, or not in five minutes', async (_, octets, everyMs, expectedMs) => {
    const ms = await timeOf(octets, everyMs);
    expect(Math.abs(ms - expectedMs)).toBeLessThan(18_000);
  });
});
