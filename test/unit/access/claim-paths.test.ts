import { describe, expect, it } from 'vitest';
import { type ClaimPath, createScopesReader, createSubjectReader } from '../../../src/access/claim-paths.ts';

const user = '{"id_company_user":null,"customer_reference":"DE--21","id_customer":21,"deep":{"er":"x"}}';

describe('createSubjectReader', () => {
  it.each<[string, Record<string, unknown>, string | undefined]>([
    ['sub', { sub: 'DE--21' }, 'DE--21'],
    ['sub', { sub: user }, user],
    ['sub.customer_reference', { sub: user }, 'DE--21'],
    ['sub.customer_reference', { sub: JSON.parse(user) }, 'DE--21'],
    ['sub.id_customer', { sub: user }, '21'],
    ['sub.deep.er', { sub: user }, 'x'],
    // no subject
    ['sub', {}, undefined],
    ['sub', { sub: '' }, undefined],
    ['sub', { sub: 21 }, undefined],
    ['sub', { sub: { a: 1 } }, undefined],
    ['sub', { sub: '\ud800' }, undefined],
    ['sub.customer_reference', { sub: 'DE--21' }, undefined],
    ['sub.customer_reference', { sub: '{"customer_reference":null}' }, undefined],
    ['sub.customer_reference', { sub: '{"customer_reference":1.5}' }, undefined],
    ['sub.customer_reference', { sub: '["x"]' }, undefined],
    ['sub.length', { sub: 'abc' }, undefined],
    ['sub.0', { sub: '["x"]' }, undefined],
    ['sub.deep', { sub: user }, undefined],
    // a claim that is JSON text is parsed, a text inside it is not
    ['sub.deep.er', { sub: '{"deep":"{\\"er\\":\\"x\\"}"}' }, undefined],
    ['constructor.name', {}, undefined],
    ['sub.__proto__', { sub: '{"a":1}' }, undefined],
    ['toString', {}, undefined],
  ])('%s of %j: %j', (path, claims, expected) => {
    expect(createSubjectReader(path)(claims)).toBe(expected);
  });

  it.each(['', '.', 'sub.', '.sub', 'sub..x'])('refuses the path %j', (path) => {
    expect(() => createSubjectReader(path)).toThrow(TypeError);
  });
});

describe('several paths for the subject', () => {
  it.each<[readonly ClaimPath[], Record<string, unknown>, string | undefined]>([
    [['customer_id', 'sub'], { customer_id: 'DE--21', sub: 'x' }, 'DE--21'],
    [['customer_id', 'sub'], { sub: 'x' }, 'x'],
    [['customer_id', 'sub'], { customer_id: null, sub: 'x' }, 'x'],
    [['sub.customer_reference', 'sub'], { sub: user }, 'DE--21'],
    [['sub.customer_reference', 'sub'], { sub: 'DE--21' }, 'DE--21'],
    [[['https://shop.example/id'], 'sub'], { 'https://shop.example/id': 'DE--21', sub: 'x' }, 'DE--21'],
    [[['sub', 'a.b']], { sub: '{"a.b":"DE--21"}' }, 'DE--21'],
    // the first path with a claim decides, even where its value is no subject
    [['customer_id', 'sub'], { customer_id: '', sub: 'x' }, undefined],
    [['customer_id', 'sub'], { customer_id: 7, sub: 'x' }, undefined],
    [['customer_id', 'sub'], {}, undefined],
    [[['a.b']], { a: { b: 'x' } }, undefined],
    [[['__proto__', 'x'], 'toString'], {}, undefined],
  ])('%j of %j: %j', (paths, claims, expected) => {
    expect(createSubjectReader(paths)(claims)).toBe(expected);
  });

  it.each<ClaimPath>(['', '.', 'a..b', [], ['']])('refuses the path %j', (path) => {
    expect(() => createSubjectReader([path])).toThrow(TypeError);
    expect(() => createScopesReader([path])).toThrow(TypeError);
  });
});

describe('createScopesReader, with the claims of common providers', () => {
  const paths = [
    ...['scope', 'scp', 'permissions', 'realm_access.roles', 'resource_access.shop.roles', 'cognito:groups'],
    ['https://shop.example/roles'],
  ];
  it.each<[Record<string, unknown>, readonly string[]]>([
    [{ scope: 'openid customer' }, ['openid', 'customer']],
    [{ scp: 'customer orders.read' }, ['customer', 'orders.read']],
    [{ scp: ['customer', 'orders'] }, ['customer', 'orders']],
    [{ permissions: ['read:carts'], scope: 'openid' }, ['openid', 'read:carts']],
    [{ realm_access: { roles: ['customer', 'customer'] } }, ['customer']],
    [{ resource_access: { shop: { roles: ['a'] }, other: { roles: ['b'] } } }, ['a']],
    [{ 'cognito:groups': ['Key Accounts'] }, ['Key Accounts']],
    [{ 'https://shop.example/roles': ['a', 1, null, ['b'], { c: 1 }] }, ['a']],
    [{ 'https://shop': { 'example/roles': ['a'] } }, []],
    [{ scopes: ['customer'] }, []],
    [{ scope: { customer: true }, scp: 7, permissions: null }, []],
  ])('%j: %j', (claims, expected) => {
    expect(createScopesReader(paths)(claims)).toEqual(expected);
  });
});
