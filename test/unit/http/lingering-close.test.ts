import type { Socket } from 'node:net';
import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { endLingering } from '../../../src/http/write-response.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function linger() {
  const socket = Object.assign(new PassThrough(), { bytesRead: 0 });
  endLingering(socket as unknown as Socket);
  /** Simulates this many octets from the client. */
  const send = (bytes: number) => {
    socket.bytesRead += bytes;
    socket.emit('data', Buffer.alloc(1));
  };
  return { socket, send };
}

it('a connection that is silent for two seconds ends', () => {
  const { socket, send } = linger();
  expect(socket.writableEnded).toBe(true);
  vi.advanceTimersByTime(1_999);
  send(1);
  vi.advanceTimersByTime(1_999);
  expect(socket.destroyed).toBe(false);
  vi.advanceTimersByTime(1);
  expect(socket.destroyed).toBe(true);
});

it('a connection whose client keeps sending ends after ten seconds', () => {
  const { socket, send } = linger();
  for (let ms = 0; ms < 10_000; ms += 400) {
    vi.advanceTimersByTime(400);
    expect(socket.destroyed).toBe(false);
    send(1);
  }
  vi.advanceTimersByTime(400);
  send(1);
  expect(socket.destroyed).toBe(true);
});

it('a connection whose client sends more than 64 MiB ends at once', () => {
  const { socket, send } = linger();
  send(67_108_864);
  expect(socket.destroyed).toBe(false);
  send(1);
  expect(socket.destroyed).toBe(true);
});

it('no timer remains after a connection has ended', () => {
  const { socket } = linger();
  socket.emit('close');
  expect(vi.getTimerCount()).toBe(0);
});
