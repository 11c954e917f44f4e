import { expect, test } from 'vitest';
import { nearestName } from '../../src/lib/nearest-name.ts';

test.each<[string, readonly string[], string | undefined]>([
  ['stroe', ['store', 'source'], 'store'],
  ['Store', ['store'], 'store'],
  ['store', ['STORE', 'store'], 'STORE'],
  ['timeout', ['timeouts', 'timout'], 'timeouts'],
  ['responseTimout', ['requestTimeout', 'responseTimeout'], 'responseTimeout'],
  ['abc', ['abd'], 'abd'],
  ['abc', ['ade'], undefined],
  ['ab', ['ba', 'abc'], 'ba'],
  ['a', ['ab'], 'ab'],
  ['a', ['abc'], undefined],
  ['abcdef', ['abcdefgh'], 'abcdefgh'],
  ['abcdef', ['abcdefghi'], undefined],
  ['abcdef', ['badcef'], 'badcef'],
  ['abcdef', ['badcfe'], undefined],
  ['', ['a'], 'a'],
  ['x', [], undefined],
])('%j among %j most likely means %j', (typed, known, meant) => {
  expect(nearestName(typed, known)).toBe(meant);
});
