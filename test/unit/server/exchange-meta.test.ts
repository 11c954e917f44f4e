import { describe, expect, it } from 'vitest';
import { codeOf, readMalformedRequest } from '../../../src/server/exchange.ts';

const sixteen = Array.from({ length: 16 }, (_, i) => `${i}`);

describe('the record of a malformed request', () => {
  it.each<[string | undefined, readonly string[]]>([
    ['/carts/1', ['carts', '1']],
    ['/', ['']],
    ['/carts/', ['carts', '']],
    ['/carts?token=secret', ['carts']],
    ['/a~b/c.d_e-f', ['a~b', 'c.d_e-f']],
    // An escape may hide the name before a secret.
    ['/%72efresh-tokens/secret', ['…']],
    ['/carts/a%20b/secret', ['carts', '…']],
    ['/carts/a;b', ['carts', '…']],
    ['/carts/a#b', ['carts', '…']],
    [`/${sixteen.join('/')}`, sixteen],
    [`/${sixteen.join('/')}/17th`, [...sixteen, '…']],
    [`/${'a'.repeat(4_100)}`, ['a'.repeat(4_095)]],
    ['http://shop.example/carts', []],
    ['*', []],
    ['', []],
    [undefined, []],
  ])('%j is logged as %j', (target, segments) => {
    expect(readMalformedRequest('GET', target)).toMatchObject({ method: 'GET', segments });
  });

  it.each([
    ['PATCH', 'PATCH'],
    ['patch', 'other'],
    ['BREW', 'other'],
    [undefined, 'other'],
  ])('the method %j is logged as %j', (method, logged) => {
    expect(readMalformedRequest(method, '/').method).toBe(logged);
  });

  it('has a request id of its own', () => {
    const [a, b] = [readMalformedRequest(), readMalformedRequest()];
    expect(a.requestId).not.toBe(b.requestId);
  });
});

it.each([
  [Object.assign(new Error(), { code: 'ECONNRESET' }), 'ECONNRESET'],
  [Object.assign(new Error(), { code: 20 }), undefined],
  [new Error('secret'), undefined],
  ['text', undefined],
  [undefined, undefined],
  [null, undefined],
])('the log code of the fault %s is %s', (fault, code) => {
  expect(codeOf(fault)).toBe(code);
});
