import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { scanPrimaryData } from '../../src/entity-tags/primary-data.ts';
import { finish } from '../../src/lib/slices.ts';

const scan = (text: string) => finish(scanPrimaryData(Buffer.from(text)));

/** What JSON.parse says, cut down to what is looked at. */
function expected(text: string): unknown {
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isMap(document)) return undefined;
  const { data } = document;
  return Array.isArray(data) ? data.slice(0, 2).map((one, i) => pruned(one, i === 0)) : pruned(data, true);
}

function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function pruned(value: unknown, hasMembers: boolean): unknown {
  if (Array.isArray(value)) return [];
  if (!isMap(value)) return value;
  const members = ['type', 'id'].filter((name) => hasMembers && Object.hasOwn(value, name));
  return Object.fromEntries(members.map((name) => [name, bare(value[name])]));
}

const bare = (value: unknown) => (Array.isArray(value) ? [] : isMap(value) ? {} : value);

const leaves = fc.oneof(
  fc.string(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.constantFrom(true, false, null, '\u00e9"\\\n', -0, 1e21),
);
const { value: values } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    leaves,
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom('data', 'id', 'type', 'attributes', 'x'), tie('value'), { maxKeys: 4 }),
  ),
}));
const documents = fc.dictionary(fc.constantFrom('data', 'included', 'meta', 'id'), values, { maxKeys: 3 });

describe('the primary data of a document that is too long to be parsed at once', () => {
  it('is what JSON.parse says', () => {
    fc.assert(
      fc.property(fc.oneof(documents, values), fc.constantFrom(0, 1, '\t'), (document, space) => {
        const text = JSON.stringify(document, null, space);
        assert.deepEqual(scan(text), expected(text));
      }),
      { numRuns: 3000 },
    );
  });

  it('is what JSON.parse says of a text that is nearly JSON', () => {
    const pieces = [
      '{',
      '}',
      '[',
      ']',
      ':',
      ',',
      '"data"',
      '"id"',
      '"type"',
      '"a"',
      '1',
      '-',
      '1.5e3',
      '01',
      'true',
      'nul',
      ' ',
      '\n',
      '"\\u0064ata"',
      '"\\x"',
      '"\u0001"',
      '\u00a0',
      '"',
      '\ufeff',
    ];
    fc.assert(
      fc.property(
        documents,
        fc.array(fc.tuple(fc.nat(60), fc.nat(2), fc.constantFrom(...pieces)), { minLength: 1, maxLength: 3 }),
        (document, edits) => {
          let text = JSON.stringify(document);
          for (const [at, cut, piece] of edits) text = text.slice(0, at) + piece + text.slice(at + cut);
          assert.deepEqual(scan(text), expected(text));
        },
      ),
      { numRuns: 5000 },
    );
  });

  it.each([
    '{"data":{"id":1},"data":{"id":2}}',
    '{"data":[{"id":1}],"data":2}',
    '{"data":{"id":"a","id":{"id":"b"},"x":{"id":"c"}}}',
    '{"data":[{"id":"a"},{"id":"b"},{"id":"c"}]}',
    '{"data":[[{"id":"a"}]]}',
    '{"\\u0064\\u0061\\u0074\\u0061":{"\\u0069d":"a"}}',
    '[{"data":{"id":"a"}}]',
    '{"data":{"id":"a"}} x',
    '{"data":{"id":"a"}',
    '{"x":{"data":{"id":"a"}}}',
    '{"data":{"__proto__":{"id":"a"}}}',
    '',
    '1',
  ])('of %s', (text) => {
    expect(scan(text)).toEqual(expected(text));
  });

  /** Steps that it takes. */
  function stepsOf(octets: Buffer): number {
    const steps = scanPrimaryData(octets);
    let count = 1;
    while (!steps.next().done) count += 1;
    return count;
  }
  const megabyte = 1_048_576;
  it.each([
    ['numbers', `{"included":[${'1,'.repeat(megabyte / 2)}1]}`],
    ['one string', `{"data":{"id":"${'a'.repeat(megabyte)}"}}`],
    ['one string of escapes', `{"data":{"id":"${'\\\\'.repeat(megabyte / 2)}"}}`],
    ['one name', `{"${'\\u0061'.repeat(megabyte / 6)}":1}`],
    ['spaces', `{"data":${' '.repeat(megabyte)}1}`],
    ['spaces after it', `{"data":1}${'\n'.repeat(megabyte)}`],
  ])('is found in slices of the document: %s', (_, text) => {
    // The step at which it is noticed that a slice is over may be a little longer than one.
    expect(stepsOf(Buffer.from(text))).toBeGreaterThan(megabyte / 16_384 - 4);
  });

  it('ends where no slice could: at a number of a megabyte, and at a depth that nobody has', () => {
    const digits = '1'.repeat(megabyte);
    expect(scan(`{"data":${digits}}`)).toBeUndefined();
    expect(stepsOf(Buffer.from(`{"data":${digits}}`))).toBeLessThan(3);
    const nested = (depth: number) => `{"data":1,"x":${'['.repeat(depth)}${']'.repeat(depth)}}`;
    expect(scan(nested(511))).toBe(1);
    expect(scan(nested(512))).toBeUndefined();
  });

  it.each(['\\"', '\\\\', '\\u0061', '"', ' "'])('is the same wherever a slice ends: in %j', (piece) => {
    for (let before = 16_384 - 12; before < 16_384 + 4; before++) {
      const text = `{"data":{"x":"${'a'.repeat(before)}${piece}b","id":"${piece}c"}}`;
      expect(scan(text), String(before)).toEqual(expected(text));
    }
  });
});
