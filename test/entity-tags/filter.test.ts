import { describe, expect, test } from 'vitest';
import { createEntityTagMatcher } from '../../src/entity-tags/filter.ts';
import { isRejection } from '../../src/http/rejection.ts';
import { answered, ask, carts, createFilter, requestOf } from './tag-filter.ts';

describe('POST among the methods that require If-Match', () => {
  const childTag = ['If-Match', '"of-the-child"'];
  const form = { isFormPost: true } as const;
  test.each([
    ['on a member', requestOf('POST', '/carts/1'), 'if-match-missing'],
    ['below it', requestOf('POST', '/carts/1/line-items'), 'if-match-missing'],
    ['far below it', requestOf('POST', '/carts/1/line-items/2/options'), 'if-match-missing'],
    [
      'below it, with a tag of the child',
      requestOf('POST', '/carts/1/line-items', childTag),
      'if-match-invalid',
    ],
    ['below it, as a form', { ...requestOf('POST', '/carts/1/line-items'), ...form }, 'if-match-missing'],
    ['of the collection', requestOf('POST', '/carts'), 'creation'],
    ['of the collection after a slash', requestOf('POST', '/carts/'), 'creation'],
    ['of the collection, as a form', { ...requestOf('POST', '/carts'), ...form }, 'if-match-missing'],
    ['another method below it', requestOf('DELETE', '/carts/1/line-items/2'), 'child-write'],
    ['another method', requestOf('PATCH', '/carts/1'), 'write'],
  ])('%s: %s', async (_, request, expected) => {
    const { filter } = createFilter({ methods: ['POST'] });
    const match = filter.match(request);
    if (match === undefined || match === 'lenient' || isRejection(match)) throw new Error('no match');
    const { rule } = filter.describe(match, request, (name) => name).details as { rule: string };
    const foreseen = filter.foresee?.(match, request, Buffer.alloc(0));
    expect(typeof foreseen === 'object' ? foreseen.rejection : rule).toBe(expected);
  });

  test('a child is added only with the current tag, which then changes', async () => {
    const { filter } = createFilter({ methods: ['POST'] });
    const read = async () => (await ask(filter, requestOf('GET', '/carts/1'), answered(200, '{}'))).tag ?? '';
    const add = (ifMatch: string) =>
      ask(filter, requestOf('POST', '/carts/1/line-items', ['If-Match', ifMatch]), answered(201, '{}'));
    const first = await read();
    const added = await add(first);
    expect(added.status).toBe(201);
    // Below a member the shop's tags are of children: it is not asked about one of the member.
    expect(added.forwarded).not.toContain('If-Match');
    expect((await add(first)).status).toBe('if-match-invalid');
    expect(await read()).not.toBe(first);
  });
});

test.each([
  ['one beside the other', '/wishlists', '/wishlists/{id}', undefined],
  ['of which one begins like the other', '/carts-of-old', '/carts-of-old/{id}', undefined],
  ['one below the other', '/carts/{id}/items', '/carts/{id}/items/{item}', 'lies below'],
  ['one below the other in another case', '/Carts/{id}/items', '/Carts/{id}/items/{item}', 'lies below'],
  ['a member elsewhere', '/wishlists', '/lists/{id}', 'a member is its collection'],
  ['a member of two parameters', '/wishlists', '/wishlists/{id}/{item}', 'a member is its collection'],
  ['a member without a parameter', '/wishlists', '/wishlists/mine', 'a member is its collection'],
])('two resources: %s', (_, collection, member, problem) => {
  for (const order of [(all: object[]) => all, (all: object[]) => all.toReversed()]) {
    const both = order([carts, { ...carts, collection, member }]) as (typeof carts)[];
    const compile = () => createEntityTagMatcher(both, { ignoredPrefixes: [] });
    if (problem === undefined) expect(compile).not.toThrow();
    else expect(compile).toThrow(problem);
  }
});

test('the whole body is digested if it cannot be parsed, ignored members included', async () => {
  const { filter } = createFilter({ ignore: ['/data/x'] });
  const read = async (body: string) =>
    (await ask(filter, requestOf('GET', '/carts/1'), answered(200, body))).tag;
  const first = await read('{"data":{"x":1}}');
  expect(await read('{"data":{"x":2}}')).toBe(first);
  const cut = await read('{"data":{"x":1');
  expect([undefined, first]).not.toContain(cut);
  expect(await read('{"data":{"x":1')).toBe(cut);
  expect(await read('{"data":{"x":2')).not.toBe(cut);
});
