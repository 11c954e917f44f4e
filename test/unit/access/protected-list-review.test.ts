import { describe, expect, it } from 'vitest';
import { compileProtectedList } from '../../../src/access/packed-list.ts';
import { type ProtectedResources, resourceId } from '../../../src/access/protected-list.ts';
import { differencesOf, findSuspicious } from '../../../src/access/protected-list-review.ts';
import { rowsOf } from '../../harness/text-table.ts';
import { listOf, readList } from './list-text.ts';

describe('differencesOf two lists', () => {
  it.each(
    rowsOf(`
GET /a -> GET /a => -
GET /a | GET /b -> GET /b | GET /a => -
GET /a | GET /b -> GET /c | GET /a
  + GET /c
  - GET /b, looser
GET /a/{x} -> GET /A/{y} => -
GET /a/b | GET /a%EF%BC%8Fb -> GET /a%EF%BC%8Fb => - GET /a/b, looser
GET /a/{x} | GET /a/{y} -> GET /a/{x} => -
GET /a -> { match: GET /a, scopes: [x] } => ~ GET /a: scopes
GET /a | GET /b/** -> GET /a/**
  + GET /a/**
  - GET /a
  - GET /b/**, looser
{ match: GET /a, scopes: [x, y] } -> { match: GET /a, scopes: [y] } => ~ GET /a: scopes, looser
{ match: GET /a, scopes: [x] } -> { match: GET /a, scopes: [y] } => ~ GET /a: scopes, looser
{ match: GET /a, scopes: [x, y] } -> { match: GET /a, scopes: [y, x] } => -
GET /a -> { match: GET /a, observe: true } => ~ GET /a: observe, looser
{ match: GET /a, observe: true } | GET /b -> GET /b => - GET /a
{ match: GET /a, observe: true } -> GET /a => ~ GET /a: observe
{ match: "GET /a/{x}", require: { x: sub, kind: [p, q] } }
GET /b
{ match: GET /c, scopes: { any: [x, y] } }
{ match: GET /d, require: { kind: [p, q] } }
->
{ match: "GET /a/{x}", require: { kind: [q, p] } }
{ match: GET /b, require: { kind: p } }
{ match: GET /c, scopes: { any: [x, y, z] } }
{ match: GET /d, require: { kind: [p, q, r] } }
  ~ GET /a/{x}: require, looser
  ~ GET /b: require
  ~ GET /c: require, looser
  ~ GET /d: require, looser
{ match: GET /a, require: { tier: [3] } }
{ match: GET /b, require: { tier: [true, x] } }
->
{ match: GET /a, require: { tier: ["3"] } }
{ match: GET /b, require: { tier: [x, "true"] } }
  ~ GET /a: require, looser
  ~ GET /b: require, looser
{ match: GET /a, scopes: { any: [x, y] } }
{ match: "GET /A", scopes: { any: [p, q] } }
{ match: GET /b, scopes: { any: [x, y] } }
{ match: "GET /B", scopes: { any: [p, q] } }
GET /c
{ match: "GET /C", require: { kind: p } }
{ match: GET /d, scopes: { any: [x, y] } }
{ match: "GET /D", scopes: { any: [p, q] } }
->
{ match: GET /a, scopes: { any: [x, y] } }
{ match: GET /b, scopes: { any: [x, y] } }
{ match: "GET /B", scopes: { any: [p, q, r] } }
GET /c
{ match: "GET /C", require: { kind: p }, observe: true }
{ match: GET /d/**, scopes: { any: [x, y] } }
  + GET /d/**
  - GET /d, looser
  ~ GET /a: require, looser
  ~ GET /b: require, looser
  ~ GET /c: require, looser
{ match: "GET /a/{x}", require: { x: sub } } | GET /a/** -> GET /a/** => - GET /a/{x}, looser
GET /a
{ match: GET /b, proof: required }
{ match: "GET /c/{id}", proof: required }
->
{ match: GET /a, proof: required }
GET /b
GET /c/**
  + GET /c/**
  - GET /c/{id}, looser
  ~ GET /a: require
  ~ GET /b: require, looser
GET /a | { match: GET /b, credentials: shop } -> { match: GET /a, credentials: shop } | GET /b
  ~ GET /a: credentials, looser
  ~ GET /b: credentials
GET /a | { match: POST /b, open: true } -> GET /a | { match: POST /c, open: true }
  + POST /b
  - POST /c, looser
GET /b/x
{ match: "GET /b/{id}", observe: true }
GET /g/x
{ match: "GET /g/{id}", tokenIn: [header, "cookie:t"] }
->
{ match: "GET /b/{id}", observe: true }
{ match: "GET /g/{id}", tokenIn: [header, "cookie:t"] }
  - GET /b/x, looser
  - GET /g/x, looser
`),
  )('%s', (lists, wanted) => {
    const sign = { added: '+', removed: '-', changed: '~' };
    const [before, after] = lists.split(/\s->\s/).map((rows) => readList(listOf(...rows.split(/\n| \| /))));
    const found = [...differencesOf(before as ProtectedResources, after as ProtectedResources)].map((one) => {
      const what = one.what.length > 0 ? `: ${one.what.join(', ')}` : '';
      return `${sign[one.kind]} ${resourceId(one.row)}${what}${one.isLooser ? ', looser' : ''}`;
    });
    expect(found.sort()).toEqual(wanted.toSorted());
  });
});

describe('findSuspicious', () => {
  it.each(
    rowsOf(`
GET /carts => -
GET /carts/{id} => 3: GET /carts/{id} is protected, GET /carts is open
GET /carts | GET /carts/{id} => -
ANY /carts/** => 3: ANY means every method but OPTIONS, which never needs a token
PATCH /a/{id} | DELETE /a/{id} => 3: PATCH /a/{id} is protected, GET /a/{id} is open
GET /a | GET /a/{id} | DELETE /a/{id} => 5: DELETE /a/{id} is protected, PATCH /a/{id} is open
GET /a/{x}/b | ANY /a | ANY /a/{x} => 4: ANY means every method but OPTIONS, which never needs a token
GET /a/{x}/b | POST /a/{x}/b/{id} | ANY /a/**
  5: ANY means every method but OPTIONS, which never needs a token
GET /a/{x}/b | POST /a/{x}/b/{id} => -
POST /a | POST /a/{x}/b => -
ANY /a/{id} | GET /a => 3: ANY means every method but OPTIONS, which never needs a token
POST /a | { match: GET /b, credentials: shop } | GET /b/{id}
  4: credentials: shop lets HTTP Basic and the cookies of auth.sessionCookies pass unchecked: the shop must check them
PUT /a/{id} | DELETE /a/{id} | GET /a/{id} | GET /a | PATCH /a/{x} | { match: "POST /a/{id}", open: true }
  8: POST /a/{id} with open: true: if the shop allows method override, a POST without a token can act as PATCH /a/{x}, PUT /a/{id}, DELETE /a/{id}, GET /a/{id}
POST /a | { match: POST /a, open: true } => 4: POST /a with open: true has no effect: POST /a matches, too
POST /a | { match: POST /b, open: true } => 4: POST /b with open: true has no effect: no row protects its path
`),
  )('%s', (rows, warnings) => {
    const found = findSuspicious(
      compileProtectedList(readList(listOf(...rows.split(' | '))), { ignoredPrefixes: [] }),
    );
    expect(found.map(({ line, text }) => `${line}: ${text}`)).toEqual(warnings);
    for (const { severity, file, text } of found)
      expect([severity, file]).toEqual([text.includes('no effect') ? 'warning' : 'note', 'list.yaml']);
  });

  it('with itemForms: false, GET /carts leaves GET /carts/{id} open', () => {
    const rules = { ignoredPrefixes: [], itemForms: false };
    const [found] = findSuspicious(compileProtectedList(readList(listOf('GET /carts')), rules));
    expect(found?.text).toBe('GET /carts is protected, GET /carts/{id} is open');
  });
});
