import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { scanPrimaryData } from '../../src/entity-tags/json-api.ts';
import { isObject, parseJsonObject } from '../../src/lib/json.ts';
import { finish } from '../../src/lib/slices.ts';

const scan = (text: string) => view(finish(scanPrimaryData(Buffer.from(text))));
const expected = (text: string) => view(parseJsonObject(text)?.data);

/** What is looked at: whether it is a list, and type and id of a sole resource. */
function view(data: unknown): unknown {
  if (!Array.isArray(data)) return isObject(data) ? [leaf(data.type), leaf(data.id)] : undefined;
  return data.length === 1 && isObject(data[0]) ? { only: view(data[0]) } : 'list';
}

const leaf = (value: unknown) => (typeof value === 'string' || typeof value === 'number' ? value : undefined);

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

  it.each([
    '{"data":{"id":1},"data":{"id":2}}',
    '{"data":[{"id":1}],"data":2}',
    '{"data":{"id":"a","id":{"id":"b"},"x":{"id":"c"}}}',
    '{"data":[{"id":"a"},{"id":"b"},{"id":"c"}]}',
    '{"data":[[{"id":"a"}]]}',
    '{"\\u0064\\u0061\\u0074\\u0061":{"\\u0069d":"a"}}',
    '[{"data":{"id":"a"}}]',
    '{"data":{"id":"a"}',
    '{"data":{"id":"a',
    '{"data":[1,{"id":"a"}]}',
    '{"data":[{"id":"a"},1]}',
    '{"data":[[1],{"id":"a"}]}',
    '{"data":{"x":{},"id":"a","y":[]},"x":{"id":"b"}}',
    '{"data":{"id":-1.5e3}}',
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

  it.each(['\\"', '\\\\', '\\u0061'])('gives the same result wherever a slice ends: %j', (piece) => {
    for (let before = 16_384 - 12; before < 16_384 + 4; before++) {
      const text = `{"data":{"x":"${'a'.repeat(before)}${piece}b","id":"${piece}c"}}`;
      expect(scan(text), String(before)).toEqual(expected(text));
    }
  });
});
