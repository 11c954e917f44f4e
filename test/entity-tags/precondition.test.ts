import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readIfMatch } from '../../src/entity-tags/entity-tag.ts';
import { namesTag, parseEntityTags, parseStrongTag } from '../../src/http/entity-tag-list.ts';
import { anyText } from '../harness/any-text.ts';

const strong = (opaque: string) => ({ weak: false, opaque });
const weak = (opaque: string) => ({ weak: true, opaque });

describe('parseEntityTags, strict (RFC 9110 sections 5.6.1, 8.8.3, 13.1)', () => {
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
  ])('%j', (lines, expected) => {
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

  test('500 tags, and 64 KiB of anything, in linear time', () => {
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

  test('never throws, and what it reads is in the text', () => {
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
      { numRuns: 3000 },
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

const A = 'a'.repeat(32);
const B = 'b'.repeat(32);

describe('readIfMatch', () => {
  test.each([
    [[], [], 'strict', 'missing'],
    [[''], [], 'strict', 'never'],
    [['*'], [], 'strict', 'never'],
    [['*'], [], 'lenient', 'never'],
    [[`"${A}"`], [], 'strict', [A]],
    [[`"${A}", "other"`, `"${B}"`], [], 'strict', [A, B]],
    [[`"${A}","${A}"`], [], 'strict', [A]],
    [[`W/"${A}"`], [], 'strict', 'never'],
    [[`W/"${A}"`], [], 'lenient', [A]],
    [[A], [], 'strict', 'never'],
    [[A], [], 'lenient', [A]],
    [[`W/${A}`], [], 'lenient', [A]],
    [[`"${A}-gzip"`], [], 'strict', 'never'],
    [[`"${A}-gzip"`], [], 'lenient', [A]],
    [[`"${A}--br"`], [], 'lenient', [A]],
    [['"other"'], [], 'strict', 'never'],
    [[`"${A}", b`], [], 'strict', 'never'],
    [[`"${A.toUpperCase()}"`], [], 'strict', 'never'],
    [[`"${A}"`], ['*'], 'strict', 'never'],
    [[`"${A}"`], [`W/"${A}"`], 'strict', 'never'],
    [[`"${A}", "${B}"`], [`"${A}"`], 'strict', [B]],
    [[`"${A}"`], ['malformed'], 'strict', 'never'],
    [[`"${A}"`], [`"${A}-gzip"`], 'strict', [A]],
    [[`"${A}"`], [`"${A}-gzip"`], 'lenient', 'never'],
    [[`"${A}-br"`, B], [A], 'lenient', [B]],
  ] as const)('If-Match %j, If-None-Match %j, %s', (ifMatch, ifNoneMatch, reading, expected) => {
    expect(readIfMatch(ifMatch, ifNoneMatch, reading)).toEqual(expected);
  });
});

describe('namesTag (If-None-Match)', () => {
  test.each([
    [[], 'strict', false],
    [['*'], 'strict', true],
    [[`"${A}"`], 'strict', true],
    [[`W/"${A}"`], 'strict', true],
    [[`"x", W/"${A}"`], 'strict', true],
    [['"x"', `"${A}"`], 'strict', true],
    [[`"${A}"`, 'malformed'], 'strict', false],
    [[`"${B}"`], 'strict', false],
    [[A], 'strict', false],
    [[A], 'lenient', true],
    [[`"${A}-gzip"`], 'strict', false],
    [[`"${A}-gzip"`], 'lenient', true],
    [[`"-gzip${A}"`], 'lenient', false],
    [[`"${A}---gzip"`], 'lenient', false],
    [[`"${A}`], 'strict', false],
  ] as const)('%j, %s: %s', (lines, reading, expected) => {
    expect(namesTag(lines, A, reading)).toBe(expected);
  });
});
