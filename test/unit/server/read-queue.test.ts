import type { Duplex } from 'node:stream';
import { setImmediate as nextTick } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { noteProgress } from '../../../src/lib/per-tick.ts';
import { ReadQueue } from '../../../src/server/read-queue.ts';

/** Sockets that note in `events` when they are stopped and read again. */
function openSockets(count: number) {
  const events: string[] = [];
  const handles = Array.from({ length: count }, (_, i) => ({
    reading: true,
    readStop: () => void events.push(`stop ${i}`),
    readStart: () => void events.push(`read ${i}`),
  }));
  const sockets = new Map(handles.map((_handle) => [{ _handle } as unknown as Duplex, undefined]));
  return { events, handles, sockets };
}

/** A tick of more than 50 ms that makes progress all the time. */
function beLong(): void {
  const endMs = performance.now() + 80;
  while (performance.now() < endMs) noteProgress();
}

const all = (word: string, count: number) => Array.from({ length: count }, (_, i) => `${word} ${i}`);

it('a long tick stops all sockets once; later ticks read them in order, twice as many in each', async () => {
  const { events, handles, sockets } = openSockets(300);
  const queue = new ReadQueue(sockets);
  beLong();
  expect(events.splice(0)).toEqual(all('stop', 300));
  (handles[299] as { reading: boolean }).reading = false;
  const counts = [];
  const read: string[] = [];
  while (read.length < 299) {
    await nextTick();
    if (events.length > 0) counts.push(events.length);
    read.push(...events.splice(0));
  }
  // The last one was paused meanwhile.
  expect([read, counts]).toEqual([all('read', 299), [64, 128, 107]]);
  queue.close();
});

it('sockets that still wait in the next long tick stay first in the queue', async () => {
  const { events, sockets } = openSockets(100);
  const queue = new ReadQueue(sockets);
  beLong();
  await nextTick();
  expect(events.splice(0)).toEqual([...all('stop', 100), ...all('read', 64)]);
  beLong();
  await nextTick();
  // The 36 that wait come first, although all others are stopped again.
  expect(events.splice(0)).toEqual([...all('stop', 64), ...all('read', 100).slice(64, 96)]);
  queue.close();
});

it('a closed one stops no socket', () => {
  const { events, sockets } = openSockets(1);
  new ReadQueue(sockets).close();
  beLong();
  expect(events).toEqual([]);
});
