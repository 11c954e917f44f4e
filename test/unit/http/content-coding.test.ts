import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { decodeBody, decodeNow } from '../../../src/http/content-coding.ts';

const text = Buffer.from('abc'.repeat(20));
const coded = {
  gzip: gzipSync(text),
  'x-gzip': gzipSync(text),
  deflate: deflateSync(text),
  br: brotliCompressSync(text),
  zstd: zstdCompressSync(text),
};
const named = (...codings: string[]) => codings.flatMap((coding) => ['content-encoding', coding]);

describe.each(Object.entries(coded))('%s', (coding, body) => {
  test('is decoded up to a maximum length', async () => {
    const fields = named(` ${coding.toUpperCase()}\t`);
    expect(await decodeBody(body, fields, text.length)).toEqual(text);
    expect(await decodeBody(body, fields, text.length - 1)).toBeNull();
    expect(decodeNow(body, fields, text.length)).toEqual(text);
    expect(decodeNow(body, fields, text.length - 1)).toBe('too-long');
  });

  test('that is malformed is refused', async () => {
    expect(await decodeBody(text, named(coding), 1000)).toBeNull();
    expect(decodeNow(text, named(coding), 1000)).toBe('broken');
  });
});

test('without a coding the body is unchanged; an unknown coding and several codings are refused', async () => {
  for (const fields of [[], named(''), named(' identity ')]) {
    expect(await decodeBody(text, fields, 1)).toEqual(text);
    expect(decodeNow(text, fields, 1)).toEqual(text);
  }
  const twice = brotliCompressSync(coded.gzip);
  for (const fields of [named('compress'), named('gzip, br'), named('gzip', 'br'), named('identity', 'x')]) {
    expect(await decodeBody(twice, fields, 1000)).toBeNull();
    expect(decodeNow(twice, fields, 1000)).toBe('unknown');
  }
});
