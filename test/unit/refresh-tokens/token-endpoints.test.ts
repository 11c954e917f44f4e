import { describe, expect, test } from 'vitest';
import type { CanonicalRequest, Method } from '../../../src/http/canonical-request.ts';
import { compileTokenEndpoints, type TokenEndpoint } from '../../../src/refresh-tokens/endpoints.ts';
import { createTokenMatcher } from '../../../src/refresh-tokens/filter.ts';
import { shopEndpoints } from './token-filter.ts';

const readShop = compileTokenEndpoints(shopEndpoints, { ignoredPrefixes: ['/index.php'] });

interface Asked {
  readonly isFormPost?: boolean;
  readonly query?: string;
  readonly body?: CanonicalRequest['body'];
}

function meaning(
  method: Method,
  path: string,
  { isFormPost = false, query = '', body = 'none' }: Asked = {},
  read = readShop,
) {
  const request = {
    method,
    path,
    segments: path.slice(1).split('/'),
    isFormPost,
    query,
    body,
  } as unknown as CanonicalRequest;
  const found = read(request);
  if (found === undefined) return 'none';
  const { refreshes, issues, otherMethod, revokes, endsShown } = found;
  return [
    refreshes.length > 0 && `exchange ${refreshes.map(({ format }) => format)}`,
    issues.length > 0 && 'issue',
    otherMethod.length > 0 && `other method ${otherMethod.map(({ format }) => format)}`,
    revokes !== undefined && `revoke ${revokes}`,
    endsShown.length > 0 && `ends ${endsShown.map(({ format }) => format)}`,
  ]
    .filter(Boolean)
    .join(', ');
}

describe('token endpoints, matched as leniently as the shop does', () => {
  test.each<[Method, string, string]>([
    ['POST', '/access-tokens', 'issue'],
    ['POST', '/company-user-access-tokens', 'issue'],
    ['POST', '/agent-access-tokens', 'issue'],
    ['POST', '/refresh-tokens', 'exchange json-api'],
    ['POST', '/token', 'exchange form, issue'],
    ['DELETE', '/refresh-tokens/abc', 'revoke abc'],
    ['DELETE', '/refresh-tokens/mine', 'revoke mine'],
    ['DELETE', '/refresh-tokens/a%2Bb%C3%A9', 'revoke a+bé'],
    ['DELETE', '/refresh-tokens/Mine', 'revoke mine'],
    ['DELETE', '/refresh-tokens/mine;x', 'revoke mine'],
    ['DELETE', '/refresh-tokens/mine%20', 'revoke mine'],
    ['DELETE', '/refresh-tokens/mine/', 'revoke mine'],
    ['DELETE', '/refresh-tokens//mine', 'revoke mine'],
    ['DELETE', '/refresh-tokens/mine.json', 'revoke mine.json'],
    ['DELETE', '/refresh-tokens/minerva', 'revoke minerva'],
    ['POST', '/refresh-tokens/', 'exchange json-api'],
    ['POST', '/refresh-tokens/anything', 'exchange json-api'],
    ['POST', '/refresh-tokens/a/b', 'exchange json-api'],
    ['POST', '/Refresh-Tokens', 'exchange json-api'],
    ['POST', '/refresh-tokens;x=1', 'exchange json-api'],
    ['POST', '/index.php/refresh-tokens', 'exchange json-api'],
    ['POST', '/carts/1/refresh-tokens', 'exchange json-api'],
    ['POST', '/x//refresh-tokens', 'exchange json-api'],
    ['DELETE', '/carts/1/refresh-tokens/abc', 'revoke abc'],
    ['POST', '/v0/refresh-tokens', 'exchange json-api'],
    ['POST', '/v0.42/access-tokens', 'issue'],
    ['POST', '/1/token', 'exchange form, issue'],
    ['POST', '/index.phpv0/refresh-tokens', 'exchange json-api'],
    ['DELETE', '/v0/refresh-tokens/abc', 'revoke abc'],
    ['DELETE', '/refresh-tokens', 'none'],
    ['GET', '/refresh-tokens', 'none'],
    ['GET', '/access-tokens', 'none'],
    ['POST', '/carts', 'none'],
  ])('%s %s: %s', (method, path, expected) => {
    expect(meaning(method, path)).toBe(expected);
  });

  test('a form POST may be a DELETE, because a form can override the method', () => {
    expect(meaning('POST', '/refresh-tokens/abc', { isFormPost: true })).toBe(
      'exchange json-api, revoke abc',
    );
  });

  test.each<[Method, string, string]>([
    ['PUT', '/refresh-tokens', 'other method json-api'],
    ['PATCH', '/refresh-tokens/x', 'other method json-api'],
    ['DELETE', '/refresh-tokens', 'other method json-api'],
    ['DELETE', '/refresh-tokens/abc', 'other method json-api, revoke abc'],
    ['GET', '/Refresh-Tokens/', 'other method json-api'],
    ['HEAD', '/refresh-tokens', 'other method json-api'],
    ['PATCH', '/carts/1', 'none'],
  ])('another method with a query or a body: %s %s: %s', (method, path, expected) => {
    expect(meaning(method, path, { query: '?refreshToken=T' })).toBe(expected);
    expect(meaning(method, path, { body: 'chunked' })).toBe(expected);
  });

  test.each<[Method, string, string]>([
    ['PUT', '/access-tokens', 'issue'],
    ['PATCH', '/v0/access-tokens/x', 'issue'],
    ['DELETE', '/agent-access-tokens', 'issue'],
    ['OPTIONS', '/token', 'issue, other method form'],
  ])('an issuing endpoint by another method, with a body: %s %s: %s', (method, path, expected) => {
    expect(meaning(method, path, { body: 'chunked' })).toBe(expected);
    expect(meaning(method, path)).toBe('none');
  });

  test('a GET of an issuing endpoint gives no tokens', () => {
    expect(meaning('GET', '/access-tokens', { query: '?page=1' })).toBe('none');
  });

  test('a format suffix that the shop cuts off is not part of the token', () => {
    const revoked = (id: string, suffix = 'json') =>
      compileTokenEndpoints(shopEndpoints, { ignoredPrefixes: [], formatSuffixes: [suffix] })({
        ...{ method: 'DELETE', path: `/refresh-tokens/${id}`, segments: ['refresh-tokens', id] },
        ...{ isFormPost: false, query: '', body: 'none' },
      } as unknown as CanonicalRequest)?.revokes;
    expect(['mine.json', 'Mine.JSON', 'abc.json', 'abc.xml'].map((id) => revoked(id))).toEqual([
      ...['mine', 'mine', 'abc', 'abc.xml'],
    ]);
    expect(['abc.x', 'eyJ9.e30.sig', 'eyJ9.e30.sig.x'].map((id) => revoked(id, '*'))).toEqual([
      ...['abc', 'eyJ9.e30.sig', 'eyJ9.e30.sig'],
    ]);
  });
});

describe('endpoints of another shop', () => {
  const { fields } = shopEndpoints[0] as TokenEndpoint;
  const endpoint = (kind: TokenEndpoint['kind'], method: Method, path: string): TokenEndpoint => ({
    ...{ kind, method, path, format: 'form', fields },
  });
  const compile = (...endpoints: TokenEndpoint[]) =>
    compileTokenEndpoints(endpoints, { ignoredPrefixes: [] });

  test.each<[Method, Asked, string]>([
    ['PUT', {}, 'exchange form'],
    ['POST', { isFormPost: true, body: 'chunked' }, 'exchange form'],
    ['POST', { body: 'chunked' }, 'other method form'],
    ['POST', { body: { length: 1 } }, 'other method form'],
    ['POST', { query: '?a' }, 'other method form'],
    ['POST', { query: '?', body: { length: 0 } }, 'none'],
    ['GET', { query: '?a' }, 'other method form'],
    ['GET', { query: '?' }, 'none'],
  ])('a refresh by PUT; %s %j: %s', (method, asked, expected) => {
    expect(meaning(method, '/renew', asked, compile(endpoint('exchange', 'PUT', '/renew')))).toBe(expected);
  });

  test.each<[Method, Asked, string]>([
    ['POST', {}, 'ends form'],
    ['PUT', { body: 'chunked' }, 'ends form'],
    ['PUT', {}, 'none'],
  ])('a revocation by POST with the token in the body (RFC 7009); %s %j: %s', (method, asked, expected) => {
    expect(meaning(method, '/revoke', asked, compile(endpoint('revoke', 'POST', '/revoke')))).toBe(expected);
  });

  test.each<[Method, boolean]>([
    ['POST', true],
    ['DELETE', true],
    ['GET', false],
  ])('an endpoint with the method %s: the filter skips plain reads: %s', (method, expected) => {
    const matcher = createTokenMatcher([endpoint('revoke', method, '/tokens/{token}')], {
      ignoredPrefixes: [],
    });
    expect(matcher.skipsPlainReads).toBe(expected);
    expect(meaning('GET', '/tokens/a', {}, matcher.match)).toBe(expected ? 'none' : 'revoke a');
  });

  test('without endpoints, no request matches', () => {
    expect(meaning('POST', '/refresh-tokens', { body: 'chunked' }, compile())).toBe('none');
  });
});
