import { describe, expect, it } from 'vitest';
import { createdId, singleMemberId, soleResource } from '../../../src/entity-tags/json-api.ts';
import { fingerprintOf, fingerprintWithout } from '../../../src/entity-tags/representation.ts';

const included = (bytes: number) => ({ included: ['x'.repeat(bytes)] });
const document = (content: object) => Buffer.from(JSON.stringify(content));

describe('documents, short and too long for one tick of the event loop', () => {
  it.each([10, 300_000])(
    'of %d bytes: equal octets have equal fingerprints, other octets another one',
    async (bytes) => {
      const octets = Buffer.alloc(bytes, 'a');
      const other = Buffer.concat([octets.subarray(1), Buffer.from('b')]);
      expect(await fingerprintOf(octets)).toHaveLength(43);
      expect(await fingerprintOf(octets)).toBe(await fingerprintOf(Buffer.from(octets)));
      expect(await fingerprintOf(octets)).not.toBe(await fingerprintOf(other));
    },
  );

  it.each([10, 300_000])('give the id of their only member, with %d further bytes', async (bytes) => {
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

  it.each([10, 300_000])('give their only resource, with %d further bytes', async (bytes) => {
    const carts = { type: 'carts', id: '17' };
    expect(await soleResource(document({ data: carts, ...included(bytes) }))).toEqual(carts);
    for (const data of [[carts], { id: '17' }, { type: 'carts' }, null]) {
      expect(await soleResource(document({ data, ...included(bytes) }))).toBe(undefined);
    }
  });

  it('give no id of more than 8191 characters', async () => {
    expect(await createdId(document({ data: { id: 'a'.repeat(8191) } }))).toHaveLength(8191);
    expect(await createdId(document({ data: { id: 'a'.repeat(8192) } }))).toBe(undefined);
  });

  it('with ignored members: parsed up to 256 KiB and 256 levels', () => {
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
});

it('of 20 answers that end together, one is parsed for `ignore` in a tick', async () => {
  const octets = Buffer.from(JSON.stringify({ data: 'x'.repeat(100_000), at: 1 }));
  let [tick, isOver] = [0, false];
  const next = () => {
    tick += 1;
    if (!isOver) setImmediate(next);
  };
  setImmediate(next);
  const ticks = await Promise.all(
    Array.from({ length: 20 }, async () => {
      await fingerprintOf(octets, ['/at']);
      return tick;
    }),
  );
  isOver = true;
  expect(new Set(ticks).size).toBe(20);
});
