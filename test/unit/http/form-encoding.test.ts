import { expect, test } from 'vitest';
import { decodeFormText } from '../../../src/http/form-encoding.ts';

test.each([
  ['', ''],
  ['a', 'a'],
  ['a+b', 'a b'],
  ['%41', 'A'],
  ['x%41', 'xA'],
  ['%4', '%4'],
  ['%', '%'],
  ['a%', 'a%'],
  ['%%41', '%A'],
  ['%4%41', '%4A'],
  // The first and last digits and letters, and their neighbours.
  ['%00%09%0a%0f', '\0\t\n\x0f'],
  ['%30%39%3A%3F', '09:?'],
  ['%0/%0:%0@%0G%0`%0g', '%0/%0:%0@%0G%0`%0g'],
  ['%/0%:0%@0%G0%`0%g0', '%/0%:0%@0%G0%`0%g0'],
  ['%7F%7f', '\x7f\x7f'],
  ['%C3%BC', 'ü'],
  ['\xc3\xbc', 'ü'],
  ['%C3', undefined],
  ['\xfc', undefined],
])('the form text %j is %j', (text, decoded) => {
  expect(decodeFormText(text)).toBe(decoded);
});
