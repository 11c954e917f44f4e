import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { LogOutput } from '../../../src/telemetry/log-output.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** An output and its reader, which has `room` for some bytes and fails with `code` when it is full. */
function setUp(keptBytes?: number) {
  const reader = {
    ...{ room: Number.POSITIVE_INFINITY, code: 'EAGAIN', taken: '', writes: 0 },
    onChunk: (_: string) => {},
  };
  const output = new LogOutput({
    ...(keptBytes !== undefined && { keptBytes }),
    write(chunk) {
      const bytes = Math.min(chunk.length, reader.room);
      if (bytes === 0) throw Object.assign(new Error(reader.code), { code: reader.code });
      reader.room -= bytes;
      reader.writes += 1;
      reader.onChunk(chunk.toString());
      reader.taken += chunk.toString('utf8', 0, bytes);
      return bytes;
    },
    droppedLine: (count) => `dropped ${count}\n`,
  });
  return { output, reader };
}

test('16 KiB of lines are written at once, in chunks of whole lines and at most 4,096 octets', () => {
  const { output, reader } = setUp();
  const chunks = { longest: 0 };
  reader.onChunk = (chunk) => {
    chunks.longest = Math.max(chunks.longest, chunk.length);
    expect(chunk.endsWith('\n')).toBe(true);
  };
  const lines = Array.from({ length: 60 }, (_, i) => `${i} ${'ä'.repeat(150)}\n`);
  for (const line of lines) output.write(line);
  expect(Buffer.byteLength(reader.taken)).toBeGreaterThan(4 * 4096 - 400);
  vi.advanceTimersByTime(5);
  expect(reader.taken).toBe(lines.join(''));
  expect(chunks.longest).toBeLessThanOrEqual(4096);
  // A longer line is a chunk of its own.
  const long = `${'l'.repeat(20_000)}\n`;
  for (const line of ['before\n', long, 'after\n']) output.write(line);
  vi.advanceTimersByTime(5);
  expect(reader.taken).toBe(`${lines.join('')}before\n${long}after\n`);
});

test('a reader that stops gets the lines that fit, whole; the others are dropped, counted and reported', () => {
  const { output, reader } = setUp(20);
  reader.room = 3;
  for (let i = 0; i < 10; i++) output.write(`line ${i}\n`);
  vi.advanceTimersByTime(5);
  expect(reader.taken).toBe('lin');
  for (let i = 10; i < 15; i++) output.write(`line ${i}\n`);
  expect(output.status).toEqual({ failures: 0, droppedLines: 13, losesLines: true, fault: 'EAGAIN' });
  reader.room = Number.POSITIVE_INFINITY;
  vi.advanceTimersByTime(60);
  expect(reader.taken).toBe('line 0\nline 1\ndropped 8\ndropped 5\n');
  output.write('more\n');
  vi.advanceTimersByTime(5);
  expect(reader.taken).toBe('line 0\nline 1\ndropped 8\ndropped 5\nmore\n');
  expect(output.status).toEqual({ failures: 0, droppedLines: 13, losesLines: false, fault: undefined });
});

test('1 MiB of lines is kept by default, and not an octet more', () => {
  const { output, reader } = setUp();
  reader.room = 0;
  const line = `${'x'.repeat(1023)}\n`;
  for (let i = 0; i < 1024; i++) output.write(line);
  vi.advanceTimersByTime(5);
  expect(output.status.droppedLines).toBe(0);
  output.write('\n');
  expect(output.status.droppedLines).toBe(1);
  reader.room = Number.POSITIVE_INFINITY;
  vi.advanceTimersByTime(60);
  expect(reader.taken).toBe(`${line.repeat(1024)}dropped 1\n`);
});

test('a slow reader is no fault', () => {
  const { output, reader } = setUp(100);
  reader.room = 0;
  output.write('a\n');
  vi.advanceTimersByTime(1000);
  expect(output.status).toEqual({ failures: 0, droppedLines: 0, losesLines: false, fault: undefined });
});
