import { expect, it } from 'vitest';
import { toMapping } from '../../src/url-resolver/envelope.ts';

it.each<[unknown, unknown]>([
  ['page', 'a\nb'],
  ['page', '\ud800'],
  ['page', 'x'.repeat(256)],
  ['page', undefined],
  [undefined, '7'],
  ['other', '7'],
])('%j with id %j is no mapping', (type, id) => {
  expect(toMapping(type, id, ['product', 'page'])).toBeUndefined();
});
