import fc from 'fast-check';
import { expect, it } from 'vitest';
import { compileProtectedList } from '../../src/access/protected-list.ts';
import { parseProtectedList } from '../../src/access/protected-list-document.ts';
import { canonicaliseAsked } from '../../src/cli/explain/explain-request.ts';
import { explainMiss } from '../../src/cli/explain/nearest-rows.ts';
import { isRejection } from '../../src/http/rejection.ts';
import { listOf } from './openapi-sample.ts';

const shop = compile(
  'GET /carts',
  'PATCH /carts/{id}',
  'GET /carts/{id}/items',
  'GET /cart-rules',
  'POST /orders',
);

function compile(...lines: string[]) {
  const { list } = parseProtectedList(listOf(...lines), 'list.yaml');
  if (list === undefined) throw new Error('the list is broken');
  return compileProtectedList(list, { ignoredPrefixes: [] });
}

function missOf(method: string, target: string, list = shop): string[] | undefined {
  const request = canonicaliseAsked({ method, target, host: 'localhost' }, {});
  return isRejection(request) ? undefined : explainMiss(request, list);
}

it('the nearest rows come first, three at most', () => {
  expect(missOf('GET', '/carts/1/itms')).toEqual([
    'GET /carts/{id}/items (list.yaml:5): segment 3 is "itms", the row has "items"',
    'PATCH /carts/{id} (list.yaml:4): the row ends after segment 2, the path goes on with "itms", and its method is PATCH',
    'GET /carts (list.yaml:3): the row ends after segment 1, the path goes on with "1"',
  ]);
});

it.each([
  [
    'the same name counts more than a parameter',
    '/main/carts/zone',
    ['/main/{id}/total', '/main/carts/rules'],
    [1, 0],
  ],
  [
    'and less than a parameter before a name that is alike',
    '/main/itms',
    ['/main/total', '/{shop}/items'],
    [1, 0],
  ],
])('%s', (_, target, templates, order) => {
  const near = missOf('GET', target, compile(...templates.map((template) => `GET ${template}`)));
  expect(near?.map((text) => text.split(' ')[1])).toEqual(order.map((i) => templates[i]));
});

it('there is a reason for each request that no row meets', () => {
  const segment = fc.constantFrom('carts', 'cart', 'items', '1', 'x', 'orders', '');
  const method = fc.constantFrom('GET', 'POST', 'PUT', 'DELETE', 'OPTIONS');
  fc.assert(
    fc.property(method, fc.array(segment, { minLength: 1, maxLength: 5 }), (asked, path) => {
      const why = missOf(asked, `/${path.join('/')}`);
      expect(why === undefined || (why.length > 0 && why.length <= 3)).toBe(true);
    }),
  );
});
