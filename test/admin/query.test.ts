import { describe, expect, it } from 'vitest';
import {
  cutPage,
  pageParameters,
  type QueryParameters,
  readPageQuery,
  readQuery,
} from '../../src/admin/query.ts';

const parameters: QueryParameters = {
  kind: { type: 'string', enum: ['refused', 'observed'], description: 'Which.' },
  text: { type: 'string', maxLength: 3, description: 'Text.' },
  free: { type: 'string', description: 'Any.' },
  limit: { type: 'integer', minimum: 0, maximum: 10, description: 'How many.' },
};

describe('a query', () => {
  it('gives each parameter as it was written', () => {
    const query = readQuery('kind=refused&text=a+b&free=%C3%BC%26&limit=010', parameters);
    expect([...(query as ReadonlyMap<string, string>)]).toEqual([
      ['kind', 'refused'],
      ['text', 'a b'],
      ['free', 'ü&'],
      ['limit', '010'],
    ]);
    expect(readQuery('', parameters)).toEqual(new Map());
  });

  it.each([
    ['kind=refused&kind=observed', 'kind is given twice'],
    ['kind=Refused', 'kind is one of refused, observed'],
    ['text=abcd', 'text may have 3 characters'],
    ['limit=11', 'limit is a whole number, 10 at most'],
    ['limit=', 'limit is a whole number, 10 at most'],
    ['limit=-1', 'limit is a whole number, 10 at most'],
    ['limit=1.5', 'limit is a whole number, 10 at most'],
    ['limit=00000000000000001', 'limit is a whole number, 10 at most'],
    ['kinds=refused', 'unknown parameter kinds; known are kind, text, free, limit'],
    ['toString=1', 'unknown parameter toString; known are kind, text, free, limit'],
    [`${'x'.repeat(60)}=1`, `unknown parameter ${'x'.repeat(50)}; known are kind, text, free, limit`],
  ])('%s: %s', (text, fault) => {
    expect(readQuery(text, parameters)).toBe(fault);
  });

  it('of an endpoint that takes none says so', () => {
    expect(readQuery('a=1', {})).toBe('unknown parameter a; this endpoint has none');
  });
});

describe('a page', () => {
  it.each([
    ['', { words: [], limit: 100, offset: 0 }],
    ['q=+Carts++GET+&limit=5&offset=7', { words: ['carts', 'get'], limit: 5, offset: 7 }],
    ['limit=0', { words: [], limit: 0, offset: 0 }],
    ['limit=999999999', { words: [], limit: 1_000, offset: 0 }],
  ])('of %j', (text, page) => {
    expect(readPageQuery(readQuery(text, pageParameters) as ReadonlyMap<string, string>)).toEqual(page);
  });

  const all = ['a', 'b', 'c', 'd'];
  it.each<[string, number, number, number, readonly string[], number | null]>([
    ['of a part names the next one', 2, 1, 1, ['b', 'c'], 3],
    ['up to the end has no next one', 2, 2, 1, ['c', 'd'], null],
    ['beyond the end is empty', 2, 9, 1, [], null],
    ['of none is empty', 0, 0, 1, [], null],
    ['ends before the entry that would make it too long', 4, 0, 128 * 1024, ['a', 'b'], 2],
    ['is one entry at least, however long it is', 4, 0, 300 * 1024, ['a'], 1],
    ['is not cut by its last octet', 4, 0, 64 * 1024, all, null],
    ['is cut by the one after it', 4, 0, 64 * 1024 + 1, ['a', 'b', 'c'], 3],
  ])('%s', (_, limit, offset, length, page, next) => {
    expect(cutPage(all, { words: [], limit, offset }, () => length)).toEqual({ page, next });
  });
});
