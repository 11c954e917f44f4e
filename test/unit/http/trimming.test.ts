import fc from 'fast-check';
import { expect, it } from 'vitest';
import { foldId } from '../../../src/entity-tags/keys.ts';
import { foldCase } from '../../../src/http/path-folding.ts';
import { withoutCredentials } from '../../../src/telemetry/log.ts';

/** The same search by regular expressions, which take quadratic time. */
const withRegExps = (text: string) =>
  text
    .replace(/(?<!file:)\/\/\S*@/g, '//…@')
    .replace(/[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}/g, '…');

/** Short texts from the given parts. */
const textsOf = (...chunks: string[]) =>
  fc.array(fc.constantFrom(...chunks), { maxLength: 12 }).map((parts) => parts.join(''));

it('the linear search hides the same credentials as regular expressions do', () => {
  const texts = textsOf('//', 'file:', '@', ' ', 'a', '/', 'abcdefghij', '.', 'http:', '\n', '-');
  fc.assert(
    fc.property(texts, (text) => {
      expect(withoutCredentials(text)).toBe(withRegExps(text));
    }),
    { numRuns: 3000 },
  );
});

it('folds accents away, however long their runs are', () => {
  const marks = '\u0316\u0300'.repeat(4000);
  expect(['e\u0301', 'é', `e${marks}`].map(foldCase)).toEqual(['e', 'e', 'e']);
  expect(foldId(`x${marks}`)).toBe('x');
});
