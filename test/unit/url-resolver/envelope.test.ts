import { expect, it } from 'vitest';
import { readDocument } from '../../../src/url-resolver/envelope.ts';

it.each<[unknown, unknown]>([
  ['page', 'a\nb'],
  ['page', '\ud800'],
  ['page', 'x'.repeat(256)],
  ['page', undefined],
  [undefined, '7'],
  ['other', '7'],
])('%j with id %j is no mapping', (entityType, entityId) => {
  const element = { type: 'url-resolver', attributes: { entityType, entityId } };
  expect(readDocument({ data: [element] }, ['product', 'page'])).toBeUndefined();
});
