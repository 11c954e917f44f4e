import fc from 'fast-check';
import { expect, it } from 'vitest';

interface Line {
  readonly kind: 'same' | 'added' | 'removed' | 'gap';
  readonly text: string;
  readonly line: number;
}

// A module of the page, without types of its own.
const place: string = '../../src/admin/console/line-diff.js';
const { diffLines } = (await import(place)) as {
  diffLines(before: string, after: string): readonly Line[] | undefined;
};

it.each([
  ['a\nb', 'a\nb', []],
  ['a', 'b', ['-a', '+b']],
  ['', 'a', ['-', '+a']],
  ['a\nb\nc', 'a\nc', [' a', '-b', ' c']],
  ['a\nc', 'a\nb\nc', [' a', '+b', ' c']],
  ['1\n2\n3\n4\n5\n6\nx\n7', '1\n2\n3\n4\n5\n6\ny\n7', [' 5', ' 6', '-x', '+y', ' 7']],
  ['x\n1\n2\n3\n4\n5\n6\nx', 'y\n1\n2\n3\n4\n5\n6\ny', ['-x', '+y', ' 1', ' 2', '…', ' 5', ' 6', '-x', '+y']],
])('between %j and %j', (before, after, expected) => {
  const signs = { same: ' ', added: '+', removed: '-', gap: '' };
  expect(diffLines(before, after)?.map(({ kind, text }) => signs[kind] + text)).toEqual(expected);
});

it('contains enough to turn each text into the other, with the numbers of lines', () => {
  const lines = fc.array(fc.constantFrom('a', 'b', 'c', ''), { maxLength: 12 });
  fc.assert(
    fc.property(lines, lines, (a, b) => {
      const shown = diffLines(a.join('\n'), b.join('\n')) ?? [];
      const removed = shown.filter(({ kind }) => kind === 'removed');
      const added = shown.filter(({ kind }) => kind === 'added');
      const left = (a.length > 0 ? a : ['']).filter((_, i) => !removed.some(({ line }) => line === i + 1));
      const right = (b.length > 0 ? b : ['']).filter((_, i) => !added.some(({ line }) => line === i + 1));
      expect(left).toEqual(right);
      const texts = b.length > 0 ? b : [''];
      for (const { kind, text, line } of shown) {
        if (kind === 'same' || kind === 'added') expect(text).toBe(texts[line - 1]);
      }
    }),
  );
});

it('does not freeze the page over two long texts that have nothing in common', () => {
  const long = (word: string) => Array.from({ length: 5_000 }, (_, i) => `${word}${i}`).join('\n');
  expect(diffLines(long('a'), long('b'))).toBeUndefined();
});
