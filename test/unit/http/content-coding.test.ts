import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { decodeBody, decodeContent } from '../../../src/http/content-coding.ts';

const text = Buffer.from('abc'.repeat(20));
const coded = {
  gzip: gzipSync(text),
  'x-gzip': gzipSync(text),
  deflate: deflateSync(text),
  br: brotliCompressSync(text),
  zstd: zstdCompressSync(text),
};

describe.each(Object.entries(coded))('%s', (coding, body) => {
  test('is decoded, up to as many octets as are wanted', async () => {
    expect(await decodeBody(body, ` ${coding.toUpperCase()}\t`, text.length)).toEqual(text);
    expect(await decodeBody(body, coding, text.length - 1)).toBeNull();
    expect(decodeContent(body, ['Content-Encoding', coding], text.length)).toEqual(text);
    expect(decodeContent(body, ['Content-Encoding', coding], text.length - 1)).toBe('too-long');
  });

  test('that is broken is not', async () => {
    expect(await decodeBody(text, coding, 1000)).toBeNull();
    expect(decodeContent(text, ['content-encoding', coding], 1000)).toBe('broken');
  });
});

test('what is not coded is as it is, and what nobody knows is nothing', async () => {
  for (const coding of [undefined, '', ' identity ']) expect(await decodeBody(text, coding, 1)).toEqual(text);
  for (const coding of ['compress', 'gzip, gzip', 'x'])
    expect(await decodeBody(text, coding, 1000)).toBeNull();
  expect(decodeContent(text, ['Content-Encoding', 'compress'], 1000)).toBe('unknown');
  expect(decodeContent(text, ['Content-Encoding', 'identity, ', 'Content-Encoding', ''], 1)).toEqual(text);
});

test('codings are taken off in turn, three at most', () => {
  const twice = brotliCompressSync(coded.gzip);
  const three = deflateSync(twice);
  expect(decodeContent(twice, ['Content-Encoding', 'gzip, br'], 1000)).toEqual(text);
  expect(decodeContent(three, ['Content-Encoding', 'gzip', 'Content-Encoding', 'br,deflate'], 1000)).toEqual(
    text,
  );
  expect(decodeContent(twice, ['Content-Encoding', 'br, gzip'], 1000)).toBe('broken');
  expect(decodeContent(gzipSync(three), ['Content-Encoding', 'gzip, br, deflate, gzip'], 1000)).toBe(
    'too-long',
  );
});

test('what is long is decoded, too, whether it came long or has become so', async () => {
  const long = Buffer.alloc(100_000, 'x');
  expect(await decodeBody(gzipSync(long), 'gzip', 100_000)).toEqual(long);
  expect(await decodeBody(gzipSync(long), 'gzip', 99_999)).toBeNull();
  const random = Buffer.from(Array.from({ length: 20_000 }, (_, i) => (i * i * 7919) % 251));
  expect(await decodeBody(gzipSync(random, { level: 0 }), 'gzip', 20_000)).toEqual(random);
});

test('what is small is decoded at once, and what is not in the pool of threads', async () => {
  const packed = (length: number) => {
    const stored = gzipSync(Buffer.alloc(length - 23, 'x'), { level: 0 });
    expect(stored.length).toBe(length);
    return decodeBody(stored, 'gzip', 100_000);
  };
  expect(packed(16_384)).toHaveLength(16_384 - 23);
  const later = packed(16_385);
  expect(later).toBeInstanceOf(Promise);
  expect(await later).toHaveLength(16_385 - 23);
});
