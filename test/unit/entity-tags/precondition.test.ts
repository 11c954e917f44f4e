import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readIfMatch } from '../../../src/entity-tags/keys.ts';
import { parseEntityTags, parseStrongTag } from '../../../src/http/entity-tag-list.ts';
import { anyText } from '../../harness/any-text.ts';

const strong = (opaque: string) => ({ weak: false, opaque });
const weak = (opaque: string) => ({ weak: true, opaque });

describe('parseEntityTags (RFC 9110 sections 5.6.1, 8.8.3, 13.1)', () => {
  test.each([
    [['*'], '*'],
    [[' * '], '*'],
    [['"*"'], [strong('*')]],
    [['"a"'], [strong('a')]],
    [['""'], [strong('')]],
    [['"a", "b"'], [strong('a'), strong('b')]],
    [['"a","b"'], [strong('a'), strong('b')]],
    [['"a,b"'], [strong('a,b')]],
    [['"a, b"'], undefined],
    [['W/"a"'], [weak('a')]],
    [['w/"a"'], undefined],
    [['W\\"a"'], undefined],
    [['W/ "a"'], undefined],
    [['W/a'], undefined],
    [['a'], undefined],
    [['"a'], undefined],
    [['a"'], undefined],
    [['"a"x'], undefined],
    [['"a" "b"'], undefined],
    [['"a\\"b"'], undefined],
    [['"a\\b"'], [strong('a\\b')]],
    [[', ,"a",'], [strong('a')]],
    [[', ,'], undefined],
    [[''], undefined],
    [['   '], undefined],
    [
      ['"a"', '"b"'],
      [strong('a'), strong('b')],
    ],
    [['"a"', ''], [strong('a')]],
    [['*', '"a"'], undefined],
    [['"a", *'], undefined],
    [['*, "a"'], undefined],
    [['"a"\t,\t"b"'], [strong('a'), strong('b')]],
    [['"caf\xe9"'], [strong('caf\xe9')]],
    [['"\xff"'], [strong('\xff')]],
    [['"!"'], [strong('!')]],
    [['"a\x7fb"'], undefined],
    [['"a\x7f, "b"'], undefined],
    [['"a , "b"'], undefined],
    [['"a\x00b"'], undefined],
    [['"a\u0100"'], undefined],
    [[], undefined],
  ])('strict: %j', (lines, expected) => {
    expect(parseEntityTags(lines, 'strict')).toEqual(expected);
  });

  test.each([
    [['abc'], [strong('abc')]],
    [['W/abc'], [strong('abc')]],
    [['abc, "d"'], [strong('abc'), strong('d')]],
    [['W/"abc"'], [weak('abc')]],
    [['a\\b'], undefined],
    [['abc"'], undefined],
    [['abc*'], undefined],
    [['a b'], undefined],
    [['W/'], undefined],
    [['"abc'], undefined],
  ])('lenient: %j', (lines, expected) => {
    expect(parseEntityTags(lines, 'lenient')).toEqual(expected);
  });

  test('500 tags are read, and 64 KiB of quotes, commas or text do not throw', () => {
    const many = Array.from({ length: 500 }, (_, i) => `"${i}"`).join(',');
    expect(parseEntityTags([many], 'strict')).toHaveLength(500);
    for (const text of [
      '"'.repeat(65_536),
      ','.repeat(65_536),
      '"a",'.repeat(16_384),
      `"${'x'.repeat(65_536)}`,
    ]) {
      expect(() => parseEntityTags([text], 'lenient')).not.toThrow();
    }
  });

  test('never throws, and each tag that it reads is a part of a line', () => {
    const line = fc.oneof(
      anyText(),
      fc
        .array(fc.constantFrom('"', 'W/', ',', ' ', '*', 'a', '\\', '\xff', '\t'), { maxLength: 20 })
        .map((a) => a.join('')),
    );
    fc.assert(
      fc.property(
        fc.array(line, { maxLength: 4 }),
        fc.constantFrom('strict', 'lenient'),
        (lines, reading) => {
          const parsed = parseEntityTags(lines, reading as 'strict');
          if (Array.isArray(parsed)) {
            for (const { opaque } of parsed) expect(lines.some((text) => text.includes(opaque))).toBe(true);
          }
        },
      ),
      { numRuns: 500 },
    );
  });
});

describe('parseStrongTag', () => {
  test.each([
    ['"a"', 'a'],
    ['"caf\xe9"', 'caf\xe9'],
    ['W/"a"', null],
    ['"a', null],
    ['a', null],
    ['"a", "b"', null],
    ['', null],
    [undefined, null],
  ])('%j', (value, expected) => {
    expect(parseStrongTag(value)).toBe(expected);
  });
});

test('readIfMatch ignores an empty second line', () => {
  const state = 'a'.repeat(31);
  const parts = ['"', '"', state, '0', 'b', '.', '0', 'c'.repeat(24), 'W/', ',', ' ', '-gzip', 'A', '\n'];
  const nearTag = fc
    .array(fc.constantFrom(...parts), { maxLength: 6 })
    .map((all) => all.join(''))
    .chain((text) => fc.constantFrom(text, `"${text}"`, `"${state}0${text}"`, `"${state}0.${text}"`));
  fc.assert(
    fc.property(nearTag, fc.constantFrom('strict' as const, 'lenient' as const), (line, reading) => {
      expect(readIfMatch([line], [], reading)).toEqual(readIfMatch([line, ''], [], reading));
    }),
    { numRuns: 2_000 },
  );
});
