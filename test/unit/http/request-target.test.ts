import { describe, expect, it } from 'vitest';
import { compileEncodedSlash } from '../../../src/http/path-template.ts';
import { canonicaliseTarget } from '../../../src/http/request-target.ts';

const none = compileEncodedSlash([]);

/** [target, canonical path, segments, query]; path-confusion.yaml of the corpus has many more. */
const canonical: readonly (readonly [string, string, readonly string[], string])[] = [
  ['/carts/123?include=items', '/carts/123', ['carts', '123'], '?include=items'],
  ['/?url=%2Fen', '/', [''], '?url=%2Fen'],
  ['/?q=caf%E9%00', '/', [''], '?q=caf%E9%00'],
  ["/?q='", '/', [''], "?q='"],
  ['////orders?//', '/orders', ['orders'], '?//'],
  ['//[::1', '/[::1', ['[::1'], ''],
  ['//evil.example/orders', '/evil.example/orders', ['evil.example', 'orders'], ''],
  ['/o%72ders/%41%7e%2D%5f%2e1', '/orders/A~-_.1', ['orders', 'A~-_.1'], ''],
  ['//%6frders?%6f', '/orders', ['orders'], '?%6f'],
  ['/a%3ab%40', '/a%3Ab%40', ['a%3Ab%40'], ''],
  ['/a%25g1', '/a%25g1', ['a%25g1'], ''],
  ['/a"b{c}<d>^`|', '/a"b{c}<d>^`|', ['a"b{c}<d>^`|'], ''],
  ['/.a%20.', '/.a%20.', ['.a%20.'], ''],
  ['/%20a%20.', '/%20a%20.', ['%20a%20.'], ''],
  ['/!/~', '/!/~', ['!', '~'], ''],
  ['/?!~', '/', [''], '?!~'],
];

describe('canonicaliseTarget', () => {
  it('refuses absolute-form without a Host to compare with', () => {
    const result = canonicaliseTarget('http://undefined/', undefined, none);
    expect(result).toMatchObject({ reason: 'not-origin-form' });
  });

  it.each(canonical)('reads %j as %j', (target, path, segments, query) => {
    expect(canonicaliseTarget(target, 'shop.example', none)).toEqual({
      path,
      segments,
      query,
      alternativeSegments: undefined,
    });
  });

  it.each([
    ['64 segments', `/${'a/'.repeat(63)}a`, undefined],
    ['63 segments and a slash', `/${'a/'.repeat(63)}`, undefined],
    ['65 segments', `/${'a/'.repeat(64)}a`, 'bad-request-target'],
    ['64 segments and a slash', `/${'a/'.repeat(64)}`, 'bad-request-target'],
    ['64 empty segments', `/a${'/'.repeat(64)}`, 'bad-request-target'],
    ['65 segments, one escaped', `/${'a/'.repeat(64)}%61`, 'bad-request-target'],
    ['a path of 8192', `/${'a'.repeat(8191)}`, undefined],
    ['a path of 8193', `/${'a'.repeat(8192)}`, 'target-too-long'],
    ['an escaped path of 8192', `/${'%61'.repeat(2730)}a`, undefined],
    ['an escaped path of 8194', `/${'%61'.repeat(2731)}`, 'target-too-long'],
    ['a query of 20000', `/?${'a'.repeat(20_000)}`, undefined],
  ])('applies the limits to %s', (_name, target, rejection) => {
    const result = canonicaliseTarget(target, 'shop.example', none);
    expect('rejection' in result ? result.rejection : undefined).toBe(rejection);
  });

  it('reads 8,000 dots in linear time', () => {
    const target = `/${'.'.repeat(8000)}x`;
    for (let i = 0; i < 2000; i++) {
      expect(canonicaliseTarget(target, 'shop.example', none)).toMatchObject({ path: target });
    }
  });
});

describe('encoded slashes', () => {
  const rules = compileEncodedSlash(['/abstract-products/{sku}', '/a/{b}/c/{d}', '/files/{folder}/{file}']);

  it.each([
    ['/abstract-products/x%2Fy', ['x%2Fy'], ['x', 'y']],
    ['/abstract-products/x%2f%2Fy', ['x%2F%2Fy'], ['x', '', 'y']],
    ['/abstract-products/%2Fx', ['%2Fx'], ['', 'x']],
    ['//abstract-products/x%2f', ['x%2F'], ['x', '']],
    ['/a/x%2Fy/c/%2F', ['a', 'x%2Fy', 'c', '%2F'], ['a', 'x', 'y', 'c', '', '']],
    ['/files/a%2Fb/c%2Fd', ['files', 'a%2Fb', 'c%2Fd'], ['files', 'a', 'b', 'c', 'd']],
  ])('gives both readings of %j', (target, segments, alternative) => {
    const path = (tail: string[]) =>
      tail[0] === 'a' || tail[0] === 'files' ? tail : ['abstract-products', ...tail];
    expect(canonicaliseTarget(target, 'shop.example', rules)).toMatchObject({
      segments: path(segments),
      path: `/${path(segments).join('/')}`,
      alternativeSegments: path(alternative),
    });
  });

  it('accepts 64 segments in the reading with slashes', () => {
    const target = `/abstract-products/${'%2F'.repeat(62)}`;
    expect(canonicaliseTarget(target, 'shop.example', rules)).toHaveProperty(
      'alternativeSegments.length',
      64,
    );
  });

  it('merges leading slashes in the other reading, too', () => {
    const anywhere = compileEncodedSlash(['/{any}']);
    expect(canonicaliseTarget('/%2F%2fcarts', 'shop.example', anywhere)).toMatchObject({
      path: '/%2F%2Fcarts',
      alternativeSegments: ['carts'],
    });
  });

  it.each([
    ['/abstract-products%2Fx', 'encoded-slash'],
    ['/Abstract-products/x%2Fy', 'encoded-slash'],
    ['/abstract-products/x%2Fy/z', 'encoded-slash'],
    ['/carts/x%2Fy', 'encoded-slash'],
    ['/files%2Fa', 'encoded-slash'],
    ['/abstract-products/x%2F..%2F..%2Fcarts', 'dot-segment'],
    ['/abstract-products/..%2fcarts', 'dot-segment'],
    ['/abstract-products/%2e%2e%3bx%2Fcarts', 'dot-segment'],
    ['/abstract-products/x%2F%2E', 'dot-segment'],
    ['/abstract-products/x%5C%2Fy', 'backslash'],
    ['/abstract-products/x%252Fy', 'double-escape'],
    [`/abstract-products/${'%2F'.repeat(63)}`, 'too-many-segments'],
  ])('refuses %j: %s', (target, reason) => {
    expect(canonicaliseTarget(target, 'shop.example', rules)).toEqual({
      rejection: 'bad-request-target',
      reason,
    });
  });
});
