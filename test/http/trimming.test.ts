import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { foldId } from '../../src/entity-tags/keys.ts';
import { trimEndWhile, trimOws } from '../../src/http/field-list.ts';
import { foldCase } from '../../src/http/path-folding.ts';
import { withoutCredentials } from '../../src/telemetry/log.ts';

/** What each routine did as regular expressions, which took the square of the length. */
const before = {
  trimOws: (text: string) => text.replace(/^[ \t]+|[ \t]+$/g, ''),
  withoutCredentials: (text: string) =>
    text
      .replace(/(?<!file:)\/\/\S*@/g, '//…@')
      .replace(/[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}/g, '…'),
};

/** Short texts of the characters that mean something to a routine. */
const textsOf = (...pieces: string[]) =>
  fc.array(fc.constantFrom(...pieces), { maxLength: 12 }).map((parts) => parts.join(''));

describe('linear routines do what the regular expressions before them did', () => {
  it('trims spaces and tabs at either end, and nothing else', () => {
    fc.assert(
      fc.property(textsOf(' ', '\t', 'a', '\u00a0', ',', '\n'), (text) => {
        expect(trimOws(text)).toBe(before.trimOws(text));
      }),
    );
    expect(trimOws('\u00a0a\u00a0')).toBe('\u00a0a\u00a0');
  });

  it('trims the end alone', () => {
    expect(trimEndWhile('//a//', (code) => code === 0x2f)).toBe('//a');
    expect(trimEndWhile('//', (code) => code === 0x2f)).toBe('');
  });

  it('hides credentials', () => {
    const texts = textsOf('//', 'file:', '@', ' ', 'a', '/', 'abcdefghij', '.', 'http:', '\n', '-');
    fc.assert(
      fc.property(texts, (text) => {
        expect(withoutCredentials(text)).toBe(before.withoutCredentials(text));
      }),
      { numRuns: 3000 },
    );
  });
});

it('composes what any text has, and cuts only runs of combining marks that no text has', () => {
  expect(foldCase('e\u0301')).toBe(foldCase('é'));
  const marks = '\u0316\u0300'.repeat(14);
  expect(foldCase(`x${marks}`)).toBe(`x${marks}`.normalize('NFKC').toUpperCase().toLowerCase());
  expect(foldId(`x${'\u0316\u0300'.repeat(4000)}`)).toBe('x');
});
