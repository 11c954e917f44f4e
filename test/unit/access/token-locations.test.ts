import { describe, expect, it } from 'vitest';
import {
  commonLocations,
  isTokenLocation,
  readPresentedToken,
  type TokenLocation,
  withoutReferredToken,
} from '../../../src/access/token-locations.ts';
import { type CanonicalRequest, extensionMethods } from '../../../src/http/canonical-request.ts';
import { fieldValues } from '../../../src/http/field-list.ts';
import { isRejection } from '../../../src/http/rejection.ts';
import { accepted, sampleHead } from '../http/sample-request.ts';

const token = 'aaaa.bbbb.cccc';
const other = 'dddd.eeee.ffff';
const words = (text: string) => text.split(' ');
const offered = (value: string) => ['Sec-WebSocket-Protocol', value];

interface Sent {
  readonly method?: string;
  readonly url?: string;
  readonly fields?: readonly string[];
  readonly isHandshake?: boolean;
}

function requestOf({ method = 'GET', url = '/a', fields = [], isHandshake = false }: Sent): CanonicalRequest {
  const upgrade = isHandshake ? ['Connection', 'Upgrade', 'Upgrade', 'websocket'] : [];
  return accepted(sampleHead({ method, url, fields: [...upgrade, ...fields] }), {
    webSocket: true,
    extensionMethods,
  });
}

/** The token and the query, cookies and subprotocols that are forwarded; or the refusal and its reason. */
function read(sent: Sent, locations: readonly TokenLocation[], origins: readonly string[] = []) {
  const request = requestOf(sent);
  const found = readPresentedToken(request, locations, origins);
  if (isRejection(found)) return `${found.rejection} ${found.reason}`;
  const goesOn = {
    query: found.request.query,
    cookie: fieldValues(found.request.fields, 'cookie'),
    offered: fieldValues(found.request.fields, 'sec-websocket-protocol'),
  };
  return [found.token, goesOn.query, ...goesOn.cookie, ...goesOn.offered].join(' ').trimEnd();
}

const bearer = ['Authorization', `Bearer ${token}`];
const every: readonly TokenLocation[] = ['header', 'cookie:sid', 'query:access_token', 'subprotocol:bearer'];

describe('one location', () => {
  it.each<[string, Sent, string]>([
    ['the header', { fields: bearer }, token],
    ['a cookie', { fields: ['Cookie', `sid=${token}`] }, token],
    ['a cookie among others', { fields: ['Cookie', `a=1; sid=${token};b="x,y"`] }, `${token}  a=1; b="x,y"`],
    ['two lines of cookies', { fields: ['Cookie', 'a=1', 'cookie', `sid=${token}`] }, `${token}  a=1`],
    ['a parameter', { url: `/a?access_token=${token}` }, token],
    ['a parameter among others', { url: `/a?x=%31&access_token=${token}&&y` }, `${token} ?x=%31&&y`],
    ['a subprotocol', { isHandshake: true, fields: offered(`bearer, ${token}`) }, token],
    [
      'subprotocols in two lines',
      { isHandshake: true, fields: [...offered('chat, bearer'), ...offered(`${token},v2.chat`)] },
      `${token}  chat, v2.chat`,
    ],
    ['nowhere', {}, 'access-token-missing missing'],
    ['an empty header', { fields: ['Authorization', ' '] }, 'access-token-missing missing'],
    ['a parameter of another name', { url: `/a?access_tokens=${token}` }, 'access-token-missing missing'],
    ['a cookie of another name', { fields: ['Cookie', `sid2=${token}`] }, 'access-token-missing missing'],
    ['a subprotocol alone', { fields: offered(`bearer, ${token}`) }, 'access-token-missing missing'],
  ])('%s', (_, sent, expected) => expect(read(sent, every)).toBe(expected));
});

describe('a name that a backend may read as the name of the token', () => {
  it.each([
    ...['sid=', 'SID=x', '%73id=x', 'sid', 'sid%00a=x', 'sid[]=x', 'sid="a.b.c"', ' sid =x', 'a=1, sid=x'],
    ...['s%u0069d=x', '%2573id=x', 'sid%=x'],
    ...['%20sid=x', '+sid=x', `sid=${token}x y`, 'sid%5B=x', 'sid=%zz'],
  ])('cookie %j is refused: alone, before and after the token', (cookie) => {
    expect(read({ fields: ['Cookie', cookie] }, every)).toBe('access-token-invalid malformed');
    for (const both of [`sid=${token}; ${cookie}`, `${cookie}; sid=${token}`])
      expect(read({ fields: ['Cookie', both] }, every)).toBe('access-token-invalid repeated');
  });

  it.each([
    ...words('access_token access_token= ACCESS_TOKEN=x access%5Ftoken=x access.token=x access+token=x'),
    ...words('access_token[]=x access_token%5B0%5D=x access_token%00=x %20access_token=x a=1;access_token=x'),
    // PHP reads an unclosed bracket as an underscore.
    ...words('access[token=x access%5btoken=x'),
    // CGI.pm and ASP.NET decode %u; some shops decode twice.
    ...words('%u0061ccess_token=x access%u005Ftoken=x %2561ccess_token=x x%25=1 %=1'),
    `access_token=${encodeURIComponent(`${token}=`)}`,
  ])('parameter %j is refused: alone and after the token', (parameter) => {
    expect(read({ url: `/a?${parameter}` }, every)).toBe('access-token-invalid malformed');
    const twice = `/a?access_token=${token}&${parameter}`;
    expect(read({ url: twice }, every)).toBe('access-token-invalid repeated');
  });

  it.each([
    ['bearer', 'malformed'],
    [`bearer.${token}, chat`, 'missing'],
    [`Bearer, ${token}`, 'malformed'],
    [`bearer, ${token}, bearer, ${other}`, 'repeated'],
    [`bearer, ${token}, BEARER`, 'repeated'],
    [`bearer, ${token}, ${token}`, 'repeated'],
    ['bearer, chat', 'malformed'],
  ])('subprotocols %j: %s', (protocols, reason) => {
    const sent = { isHandshake: true, fields: offered(protocols) };
    const name = reason === 'missing' ? 'access-token-missing' : 'access-token-invalid';
    expect(read(sent, every)).toBe(`${name} ${reason}`);
  });
});

it.each<[string, Sent]>([
  ['header and cookie', { fields: [...bearer, 'Cookie', `sid=${token}`] }],
  ['header and parameter', { url: `/a?access_token=${token}`, fields: bearer }],
  ['cookie and parameter', { url: `/a?access_token=${token}`, fields: ['Cookie', `sid=${other}`] }],
  ['other credentials and cookie', { fields: ['Authorization', 'Basic YTpi', 'Cookie', `sid=${token}`] }],
  ['a good one and a malformed one', { url: '/a?access_token=', fields: bearer }],
  [
    'subprotocol and cookie',
    { isHandshake: true, fields: [...offered(`bearer, ${token}`), 'Cookie', `sid=${token}`] },
  ],
])('two locations are refused: %s', (_, sent) => {
  expect(read(sent, every)).toBe('access-token-repeated two-places');
});

it('a header where the row accepts only a cookie: refused, with and without the cookie', () => {
  expect(read({ fields: bearer }, ['cookie:sid'])).toBe('access-token-missing other-place');
  expect(read({ fields: [...bearer, 'Cookie', `sid=${token}`] }, ['cookie:sid'])).toBe(
    'access-token-repeated two-places',
  );
});

describe('the token in a cookie, which a browser adds by itself, from', () => {
  const refused = 'cross-site-request origin';
  const shop = ['Origin', 'http://shop.example'];
  it.each<[string, readonly string[], string]>([
    ['a page of the host', shop, token],
    ['a page of the host, with Sec-Fetch-Site', [...shop, 'Sec-Fetch-Site', 'same-origin'], token],
    ['Sec-Fetch-Site alone', ['Sec-Fetch-Site', 'same-origin'], token],
    ['an allowed page', ['Origin', 'https://app.example', 'Sec-Fetch-Site', 'cross-site'], token],
    ['no Origin and no Sec-Fetch-Site', [], refused],
    ['a page of another host', ['Origin', 'https://evil.example'], refused],
    ['a sandboxed page', ['Origin', 'null'], refused],
    ['another scheme', ['Origin', 'https://shop.example'], refused],
    ['another port', ['Origin', 'http://shop.example:81'], refused],
    ['a host that begins with the name of the shop', ['Origin', 'http://shop.example.evil.example'], refused],
    ['a page of a sibling host', ['Sec-Fetch-Site', 'same-site'], refused],
    ['a sibling host with the Origin of the shop', [...shop, 'Sec-Fetch-Site', 'same-site'], refused],
    ['Sec-Fetch-Site: none', ['Sec-Fetch-Site', 'none'], refused],
    ['two origins', [...shop, 'origin', 'https://evil.example'], refused],
    ['two sites', ['Sec-Fetch-Site', 'same-origin', 'Sec-Fetch-Site', 'cross-site'], refused],
    ['an empty origin', ['Origin', ''], refused],
  ])('%s', (_, fields, expected) => {
    const cookie = ['Cookie', `sid=${token}`];
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', ...extensionMethods])
      expect(read({ method, fields: [...cookie, ...fields] }, every, ['https://app.example'])).toBe(expected);
    const handshake = { isHandshake: true, fields: [...cookie, ...fields] };
    expect(read(handshake, every, ['https://app.example'])).toBe(expected);
    for (const method of ['GET', 'HEAD', 'OPTIONS'])
      expect(read({ method, fields: [...cookie, ...fields] }, every)).toBe(token);
    expect(read({ method: 'POST', fields: [...bearer, ...fields] }, every)).toBe(token);
  });

  it('an Origin without a port fits a host with the default port', () => {
    const fields = ['Cookie', `sid=${token}`, 'Origin', 'http://shop.example'];
    const request = { ...requestOf({ method: 'POST', fields }), host: 'shop.example:80' };
    expect(isRejection(readPresentedToken(request, every, []))).toBe(false);
  });
});

it.each([
  ['https://a.example/p?access_token=x', true],
  ['https://a.example/p?x=1&access%5Ftoken=x', true],
  ['https://a.example/p?%u0061ccess_token=x', true],
  ['https://a.example/p#access_token=x', true],
  ['https://a.example/p?x=1#access_token=x', true],
  ['https://a.example/access_token=x', false],
  ['https://a.example/p?x=access_token', false],
])('Referer %s: removed: %s', (referer, isTaken) => {
  const request = requestOf({ fields: ['Referer', referer] });
  const { fields } = withoutReferredToken(request, ['access_token']);
  expect(fieldValues(fields, 'referer')).toEqual(isTaken ? [] : [referer]);
});

it('an opaque token may be percent-encoded in a query or a cookie', () => {
  const opaque = 'a+b/c~-._==';
  const read = (fields: readonly string[], url: string) => {
    const found = readPresentedToken(requestOf({ fields, url }), every, [], true);
    return isRejection(found) ? found.reason : found.canonicalValue;
  };
  expect(read([], `/a?${new URLSearchParams({ access_token: opaque })}`)).toBe(`Bearer ${opaque}`);
  expect(read(['Cookie', `sid=${encodeURIComponent(opaque)}`], '/a')).toBe(`Bearer ${opaque}`);
  for (const bad of ['%E2%84%AA', '%ff', 'a%20b', '%2561'])
    expect(read([], `/a?access_token=${bad}`)).toBe('malformed');
  expect(read(['Cookie', 'sid=%0d%0aX: y'], '/a')).toBe('malformed');
});

it('isTokenLocation refuses unknown kinds and special characters', () => {
  expect(every.every(isTokenLocation)).toBe(true);
  for (const text of ['cookie:', 'cookie', 'cookie:a b', 'query:a=b', 'body:a', 'header:x', 'cookie:é', ''])
    expect(isTokenLocation(text)).toBe(false);
});

it('a request that matches two rows may use the locations that both accept', () => {
  expect(commonLocations(undefined, undefined)).toBe(undefined);
  expect(commonLocations(every, undefined)).toBe(undefined);
  expect(commonLocations(['cookie:a'], undefined)).toEqual([]);
  expect(commonLocations(['cookie:a', 'header'], ['cookie:a', 'cookie:b'])).toEqual(['cookie:a']);
  expect(read({ fields: bearer }, [])).toBe('access-token-missing other-place');
});
