import { expect, it } from 'vitest';
import { escapeToLine, readInput, textTable } from '../../../src/cli/command-io.ts';

it.each([
  ['\u0000', '\\u0000'],
  ['\u001b[2J', '\\u001b[2J'],
  ['\u009b', '\\u009b'],
  ['a\tb\nc\r', 'a\\tb\\nc\\u000d'],
  ['\u202e\u2028\u061c', '\\u202e\\u2028\\u061c'],
  ['caf\u00e9 "x"', 'caf\u00e9 "x"'],
])('%j is shown as %s', (text, shown) => {
  expect(escapeToLine(text)).toBe(shown);
});

it('a table has columns as wide as their longest cell, and nothing at the end of a line', () => {
  const rows = [
    ['a', 'long', 'x'],
    ['longer', ''],
    ['b\n', 'c'],
  ];
  expect(textTable(rows)).toEqual(['a       long  x', 'longer', 'b\\n     c']);
});

it('standard input is read no further than requested', async () => {
  let read = 0;
  const input = (async function* () {
    for (const chunk of ['abc', 'def', 'ghi']) {
      read += 1;
      yield chunk;
    }
  })();
  const io = { input, env: {}, cwd: '', out: () => {}, err: () => {} };
  expect([await readInput(io, 5), read]).toEqual(['abcde', 2]);
});
