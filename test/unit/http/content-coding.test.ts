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
  test('is decoded up to a maximum length', async () => {
    expect(await decodeBody(body, ` ${coding.toUpperCase()}\t`, text.length)).toEqual(text);
    expect(await decodeBody(body, coding, text.length - 1)).toBeNull();
    expect(decodeContent(body, ['Content-Encoding', coding], text.length)).toEqual(text);
    expect(decodeContent(body, ['Content-Encoding', coding], text.length - 1)).toBe('too-long');
  });

  test('that is malformed is refused', async () => {
    expect(await decodeBody(text, coding, 1000)).toBeNull();
    expect(decodeContent(text, ['content-encoding', coding], 1000)).toBe('broken');
  });
});

test('without a coding the body is unchanged, and an unknown coding is refused', async () => {
  for (const coding of [undefined, '', ' identity ']) expect(await decodeBody(text, coding, 1)).toEqual(text);
  for (const coding of ['compress', 'gzip, gzip', 'x'])
    expect(await decodeBody(text, coding, 1000)).toBeNull();
  expect(decodeContent(text, ['Content-Encoding', 'compress'], 1000)).toBe('unknown');
  expect(decodeContent(text, ['Content-Encoding', 'identity, ', 'Content-Encoding', ''], 1)).toEqual(text);
});

test('up to three codings are decoded in order', () => {
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

test('long bodies are decoded, whether long before or only after decoding', async () => {
  const long = Buffer.alloc(100_000, 'x');
  expect(await decodeBody(gzipSync(long), 'gzip', 100_000)).toEqual(long);
  expect(await decodeBody(gzipSync(long), 'gzip', 99_999)).toBeNull();
  const random = Buffer.from(Array.from({ length: 20_000 }, (_, i) => (i * i * 7919) % 251));
  expect(await decodeBody(gzipSync(random, { level: 0 }), 'gzip', 20_000)).toEqual(random);
});

test('a body of up to 16 KiB is decoded synchronously, a longer one in the thread pool', async () => {
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
