import { describe, expect, it } from 'vitest';
import { openPackedList, packList } from '../../../src/access/packed-list.ts';
import { compileProtectedList, type ProtectedResources } from '../../../src/access/protected-list.ts';
import { parseProtectedList } from '../../../src/access/protected-list-document.ts';
import { tableRequest } from '../routes/path-table-request.ts';

const paths = { ignoredPrefixes: ['/index.php'], formatSuffixes: ['json'] };
const listOf = (rows: readonly string[]) =>
  `groups:\n  A:\n${rows.map((row) => `    - ${row}\n`).join('')}  B:\n    - ANY /b/**\ncomplete: true\n`;

function read(rows: readonly string[]): ProtectedResources {
  const { list, problems } = parseProtectedList(listOf(rows), 'list.yaml');
  if (list === undefined) throw new Error(JSON.stringify(problems));
  return list;
}

describe('a packed list after structuredClone', () => {
  const rows = [
    'GET /carts/{cart_id}',
    'PATCH /Carts/{id}',
    '{ match: "POST /carts/{id}/items", scopes: [write, admin] }',
    '{ match: "GET /v1/orders", tokenIn: [header, "query:access"] }',
    '{ match: "GET /caf%C3%A9/{x}", observe: true }',
    '{ match: "DELETE /carts/{id}", credentials: shop }',
    '{ match: "GET /users/{id}", scopes: { any: [x, y] }, require: { id: sub, level: [1, true] } }',
    '{ match: "GET /users/{id}/{part}", scopes: { any: [x, y] }, require: { id: sub, level: ["1"] } }',
    '{ match: "GET /users/{id}/{part}/more", scopes: { any: [x, y] }, require: { id: sub, level: ["1"] } }',
    '{ match: "POST /carts/{id}/vouchers", open: true }',
    'GET /**',
    'PUT /',
  ];
  const list = read(rows);
  const compiled = compileProtectedList(list, paths);
  const packed = openPackedList(structuredClone(packList(list, paths)), 'list.yaml');

  it('has the same rows, open rows and token parameters', () => {
    expect([...packed.rows]).toEqual([...compiled.rows]);
    expect([...packed.open]).toMatchObject([...compiled.open]);
    expect(packed.tokenParameters).toEqual(['access']);
    expect(packed.rows.at(0)).toEqual(compiled.rows.at(0));
    expect([packed.rows.at(-1), packed.rows.at(packed.rows.length)]).toEqual([undefined, undefined]);
  });

  it.each([
    'GET /carts/7',
    'GET /CARTS/7',
    'PATCH /carts/7',
    'PATCH /x/carts/7',
    'POST /carts/7/items',
    'POST /carts/7/vouchers',
    'POST /index.php/carts/7/vouchers',
    'GET /orders',
    'GET /v1/orders/3',
    'GET /index.phpv1/orders.json',
    'GET /cafe%CC%81/1',
    'DELETE /carts/7',
    'DELETE /carts/%37',
    'ANY /b',
    'PUT /',
    'PUT //',
    'OPTIONS /carts/7',
    'GET /users/7',
    'GET //users/;/7/8',
    'GET /v1/users/8/9/more',
    'GET /x/y/users/8//9',
  ])('gives the answers of the compiled list: %s', (text) => {
    const request = tableRequest(text.replace('ANY', 'PATCH'));
    expect(packed.match(request)).toEqual(compiled.match(request));
    expect(packed.matchRows(request)).toEqual(compiled.matchRows(request));
    expect(packed.openedBy(request)?.template).toBe(compiled.openedBy(request)?.template);
  });

  it('indexesOf gives the same rows as the compiled list', () => {
    for (const template of ['/carts/{x}', '/b/**', '/v1/orders', '/orders', '/', '/**', '/none'])
      expect(packed.indexesOf(template)).toEqual(compiled.indexesOf(template));
    expect(packed.indexesOf('/cARTS/{x}')).toHaveLength(3);
  });
});
