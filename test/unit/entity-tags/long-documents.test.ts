import * as zlib from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { createdId, singleMemberId, soleResource } from '../../../src/entity-tags/json-api.ts';
import { fingerprintOf, fingerprintWithout } from '../../../src/entity-tags/representation.ts';
import { decodeBody } from '../../../src/http/content-coding.ts';

const included = (bytes: number) => ({ included: ['x'.repeat(bytes)] });
const document = (content: object) => Buffer.from(JSON.stringify(content));

describe('documents that are too long for one turn', () => {
  it.each([10, 300_000])('have the fingerprint of their octets at %d bytes', async (bytes) => {
    const octets = Buffer.alloc(bytes, 'a');
    const other = Buffer.concat([octets.subarray(1), Buffer.from('b')]);
    expect(await fingerprintOf(octets)).toHaveLength(43);
    expect(await fingerprintOf(octets)).toBe(await fingerprintOf(Buffer.from(octets)));
    expect(await fingerprintOf(octets)).not.toBe(await fingerprintOf(other));
  });

  it.each([10, 300_000])('name their one member with %d bytes beside it', async (bytes) => {
    expect(await singleMemberId(document({ data: [{ id: '17' }], ...included(bytes) }))).toBe('17');
    expect(await singleMemberId(document({ data: [{ id: '17' }, { id: '18' }], ...included(bytes) }))).toBe(
      undefined,
    );
    expect(await singleMemberId(document({ data: { id: '17' }, ...included(bytes) }))).toBe(undefined);
    expect(await createdId(document({ data: { id: 17 }, ...included(bytes) }))).toBe('17');
    expect(await createdId(document({ data: [{ id: '17' }], ...included(bytes) }))).toBe('17');
    expect(await createdId(document({ data: [{ id: '17' }, {}], ...included(bytes) }))).toBe(undefined);
    expect(await createdId(document({ data: {}, ...included(bytes) }))).toBe(undefined);
  });

  it.each([10, 300_000])('name their one resource with %d bytes beside it', async (bytes) => {
    const carts = { type: 'carts', id: '17' };
    expect(await soleResource(document({ data: carts, ...included(bytes) }))).toEqual(carts);
    for (const data of [[carts], { id: '17' }, { type: 'carts' }, null]) {
      expect(await soleResource(document({ data, ...included(bytes) }))).toBe(undefined);
    }
  });

  it('have no id that no path could name', async () => {
    expect(await createdId(document({ data: { id: 'a'.repeat(8191) } }))).toHaveLength(8191);
    expect(await createdId(document({ data: { id: 'a'.repeat(8192) } }))).toBe(undefined);
  });

  it('are not parsed for what is to be ignored', () => {
    const pointers = ['/data/at'];
    const withTime = (at: number, bytes: number) => document({ data: { at, text: 'x'.repeat(bytes) } });
    expect(fingerprintWithout(withTime(1, 1000), pointers)).toBe(
      fingerprintWithout(withTime(2, 1000), pointers),
    );
    expect(fingerprintWithout(withTime(1, 300_000), pointers)).toBe(null);
    const nested = (levels: number) => Buffer.from('['.repeat(levels) + ']'.repeat(levels));
    expect(fingerprintWithout(nested(256), pointers)).not.toBe(null);
    expect(fingerprintWithout(nested(257), pointers)).toBe(null);
    const inString = Buffer.from(JSON.stringify({ text: `"${'['.repeat(1000)}` }));
    expect(fingerprintWithout(inString, pointers)).not.toBe(null);
  });

  it.each(['gzip', 'br', 'zstd', 'deflate'] as const)(
    'are decoded beside what is served (%s)',
    async (coding) => {
      const encode = {
        gzip: zlib.gzipSync,
        br: zlib.brotliCompressSync,
        zstd: zlib.zstdCompressSync,
        deflate: zlib.deflateSync,
      }[coding];
      const short = Buffer.alloc(1000, 'a');
      const long = Buffer.alloc(1_000_000, 'a');
      expect(decodeBody(encode(short), coding, 2_000_000)).toEqual(short);
      const decoded = decodeBody(encode(long), coding, 2_000_000);
      expect(decoded).toBeInstanceOf(Promise);
      expect(long.equals((await decoded) as Buffer)).toBe(true);
      expect(await decodeBody(encode(long), coding, 500_000)).toBe(null);
    },
  );
});
