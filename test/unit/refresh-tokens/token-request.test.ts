import { describe, expect, test } from 'vitest';
import { findCandidate } from '../../../src/refresh-tokens/token-request.ts';
import { shopEndpoints } from './token-filter.ts';

const refreshes = shopEndpoints.filter(({ kind }) => kind === 'exchange');
const jsonApi = refreshes.filter(({ format }) => format === 'json-api');
const oauth = refreshes.filter(({ format }) => format === 'form');
const named = (refreshToken: string) =>
  oauth.map((one) => ({ ...one, fields: { ...one.fields, refreshToken } }));

interface Sent {
  readonly type?: string | readonly string[];
  readonly fields?: readonly string[];
  readonly query?: string;
  readonly endpoints?: typeof refreshes;
}

/** The token, `none`, or the reason of the refusal. */
function find(body: string | Buffer, { type, fields = [], query = '', endpoints = jsonApi }: Sent = {}) {
  const types = type === undefined ? ['application/json'] : [type].flat();
  const all = [...types.flatMap((one) => ['Content-Type', one]), ...fields];
  const found = findCandidate({ fields: all, query }, Buffer.from(body as string), endpoints);
  return 'notPlain' in found ? `refused: ${found.notPlain}` : (found.token ?? 'none');
}

const formType = 'application/x-www-form-urlencoded';
const findForm = (body: string | Buffer, more: Sent = {}) =>
  find(body, { type: formType, endpoints: oauth, ...more });
const attributes = (text: string) => `{"data":{"type":"refresh-tokens","attributes":{${text}}}}`;
const good = attributes('"refreshToken":"T"');

test.each<[string, string, string]>([
  ['JSON:API', good, 'T'],
  ['a member at the top', '{"refreshToken":"T"}', 'T'],
  ['white space', attributes('\n "refreshToken" \t:\r\n "T" '), 'T'],
  ['escapes that every parser decodes', '{"refresh\\u0054oken":"1\\/\\u002b\\u003d"}', '1/+='],
  ['a similar name too', attributes('"refreshTokenId":"x","refreshToken":"T"'), 'T'],
  ['no member', '{}', 'none'],
  ['an empty text', '{"refreshToken":""}', 'none'],
  ['null', '{"refreshToken":null}', 'none'],
  ['an access token', attributes('"accessToken":"T"'), 'none'],
  ['snake case', '{"refresh_token":"T"}', 'refused: other-spelling'],
  ['a name in another case', '{"RefreshToken":"T"}', 'refused: other-spelling'],
  ['dots that nest', '{"data.attributes.refreshToken":"T"}', 'refused: other-spelling'],
  ['full-width letters', '{"\uff52efreshToken":"T"}', 'refused: name'],
  ['an accent', '{"r\u00e9freshToken":"T"}', 'refused: name'],
  ['a NUL after the name', '{"refreshToken\\u0000":"T"}', 'refused: name'],
  ['a lone surrogate', '{"refreshToken\\ud800":"T"}', 'refused: name'],
  ['percent-encoding in a name', '{"refresh%54oken":"T"}', 'refused: name'],
  ['a form in a name', '{"&refreshToken=T&":1}', 'refused: name'],
  ['a bracket in a name', '{"refreshToken[]":"T"}', 'refused: name'],
  ['an empty name', '{"":"T"}', 'refused: name'],
  ['two envelopes', '{"data":{"refreshToken":"U"},"data":{}}', 'refused: repeated'],
  ['a repeated other member', '{"x":1,"x":2,"refreshToken":"T"}', 'refused: repeated'],
  ['two objects', `[${good},${good}]`, 'refused: repeated'],
  ['a list', '{"refreshToken":["T"]}', 'refused: not-text'],
  ['a number', '{"refreshToken":1}', 'refused: not-text'],
  ['an object', '{"refreshToken":{"x":"T"}}', 'refused: not-text'],
  ['a form in a value', '{"x":"&refreshToken=T&"}', 'refused: other-spelling'],
  ['an encoded form in a value', '{"x":"&refresh%54oken=T&"}', 'refused: other-spelling'],
  ['a form in a list', '["&refreshToken=T&"]', 'refused: other-spelling'],
  ['JSON in a text', '"{\\"refreshToken\\":\\"T\\"}"', 'refused: other-spelling'],
  ['a form in a text', '"&refreshToken=T&"', 'refused: other-spelling'],
  ['JSON in a value', '{"x":"{\\"refreshToken\\":\\"T\\"}"}', 'refused: other-spelling'],
  ['an escape that Ruby accepts', '{"refreshToken":"\\d"}', 'refused: syntax'],
  ['a byte order mark', `\ufeff${good}`, 'refused: syntax'],
  ['a trailing comma', '{"refreshToken":"T",}', 'refused: syntax'],
  ['single quotes', "{'refreshToken':'T'}", 'refused: syntax'],
  ['a second document', `${good}{}`, 'refused: syntax'],
  ['NaN', '{"refreshToken":"T","x":NaN}', 'refused: syntax'],
  ['a form', 'refreshToken=T', 'refused: syntax'],
  ['a NUL', `${good}\0`, 'refused: charset'],
  ['32 levels', `${'['.repeat(32)}${']'.repeat(32)}`, 'none'],
  ['33 levels', `${'['.repeat(33)}${']'.repeat(33)}`, 'refused: too-many-fields'],
])('JSON with %s', (_, body, expected) => {
  expect(find(body)).toBe(expected);
});

test.each<[string, string, string]>([
  ['a grant', 'grant_type=refresh_token&refresh_token=T&client_id=a&client_secret=b', 'T'],
  ['no grant', 'refresh_token=T', 'T'],
  ['a password grant and a token', 'grant_type=password&refresh_token=T', 'T'],
  ['escapes', 'refresh%5Ftoken=1%2F%2F%2b', '1//+'],
  ['no token', 'grant_type=password&username=a&password=b&scope=c', 'none'],
  ['an empty token', 'grant_type=password&refresh_token=', 'none'],
  ['any password', 'grant_type=password&password=%F0%9F%94%91+%C3%A4;b%3D%26%22%7B%5B100%', 'none'],
  ['a scope named like the token', 'scope=openid+refresh_token&refresh_token=T', 'T'],
  ['empty pairs', `${'&'.repeat(300)}refresh_token=T&`, 'T'],
  ['an escape that is escaped', 'refresh%255Ftoken=T', 'refused: name'],
  ['an escaped bracket', 'refresh%5Btoken=T', 'refused: name'],
  ['a list', 'refresh_token[]=T', 'refused: name'],
  ['a list of another name', 'scope[]=a&refresh_token=T', 'refused: name'],
  ['a space before the name', '+refresh_token=T', 'refused: name'],
  ['a NUL in the name', 'refresh_token%00x=T', 'refused: name'],
  ['octets that are not UTF-8 in a name', 'refresh_token%ff=T', 'refused: name'],
  ['an entity', 'a=b&amp;refresh_token=T', 'refused: name'],
  ['a byte order mark', '\ufeffrefresh_token=T', 'refused: name'],
  ['JSON', '{"refresh_token":"T"}', 'refused: name'],
  ['XML', '<refresh_token>T</refresh_token>', 'refused: name'],
  ['YAML', 'refresh_token: T', 'refused: name'],
  ['a dot, which PHP reads as _', 'refresh.token=T', 'refused: other-spelling'],
  ['a dot that nests', 'data.refresh_token=T', 'refused: other-spelling'],
  ['camel case', 'refreshToken=T', 'refused: other-spelling'],
  ['a hyphen', 'refresh-token=T', 'refused: other-spelling'],
  ['JSON in a value', 'x={"refresh_token":"T"}', 'refused: other-spelling'],
  ['a form in a value, escaped twice', 'x=%2526refresh%255Ftoken%253DT', 'refused: other-spelling'],
  ['two tokens', 'refresh_token=U&refresh_token=T', 'refused: repeated'],
  ['a name alone and a token', 'refresh_token&refresh_token=T', 'refused: repeated'],
  ['more fields than PHP reads', `${'a=b&'.repeat(300)}refresh_token=T`, 'refused: too-many-fields'],
  ['65,537 octets', `refresh_token=T&x=${'x'.repeat(65_519)}`, 'refused: too-long'],
])('a form with %s', (_, body, expected) => {
  expect(findForm(body)).toBe(expected);
});

test.each([
  ['auth[token]=T', 'T'],
  ['auth%5Btoken%5D=T', 'T'],
  ['auth[other]=T', 'refused: name'],
  ['auth_token=T', 'refused: other-spelling'],
])('a form for the configured name auth[token]: %s', (body, expected) => {
  expect(findForm(body, { endpoints: named('auth[token]') })).toBe(expected);
});

test.each([
  ['UTF-16LE', Buffer.from(good, 'utf16le')],
  ['UTF-16BE', Buffer.from(good, 'utf16le').swap16()],
  ['UTF-32LE', Buffer.from(Uint32Array.from([...good], (one) => one.codePointAt(0) ?? 0).buffer)],
  ['Latin-1', Buffer.from('{"refreshToken":"T","x":"\u00e9"}', 'latin1')],
])('a body in %s is refused', (_, body) => {
  expect(find(body)).toBe('refused: charset');
});

const json =
  'application/json|application/json; charset=utf-8|application/json;charset=UTF-8|' +
  'application/json; charset="utf-8"|Application/JSON|application/vnd.api+json|' +
  'application/vnd.api+json; version=1.1|' +
  'application/vnd.api+json; profile="http://example.com/last-modified"';
test.each(json.split('|'))('%s is JSON', (type) => {
  expect(find(good, { type })).toBe('T');
});

const others =
  'application/json, text/plain|text/plain|application/xml|application/json; boundary=b|' +
  'application/json; charset=utf-8; charset=utf-16|application/json; charset=utf-8 x|' +
  "application/json; charset*=utf-8''utf-8|application/json; charset=ibm037|" +
  'application/x-www-form-urlencoded; charset=utf-16|application/x-www-form-urlencoded; version=1|' +
  'multipart/form-data; boundary=b|multipart/mixed; boundary=b';
const noOneType = [[], ['application/json', 'application/json']];
test.each([...noOneType, ...others.split('|')].map((type) => [type]))(
  'the media type %j is refused',
  (type) => {
    expect(find(good, { type })).toBe('refused: content-type');
  },
);

test.each(['x', 'gzip', 'br', 'identity', ''])('the content coding %j is refused', (coding) => {
  expect(find(good, { fields: ['Content-Encoding', coding] })).toBe('refused: content-coding');
  expect(find(good, { fields: ['Content-Transfer-Encoding', coding] })).toBe('refused: content-coding');
});

describe('the query', () => {
  test.each<[string, string, string]>([
    ['?include=x', 'refresh_token=T', 'T'],
    ['?grant_type=password', 'refresh_token=T', 'T'],
    ['?', '', 'none'],
    ['?refresh_token=T', '', 'refused: query'],
    ['?refresh_token=', 'refresh_token=T', 'refused: query'],
    ['?refresh_token=T', 'grant_type=refresh_token', 'refused: query'],
    ['?fields[refresh-tokens]=accessToken', 'refresh_token=T', 'refused: name'],
    ['?refresh%u005ftoken=T', '', 'refused: name'],
    ['?refresh.token=T', '', 'refused: other-spelling'],
    ['?x=1;refresh_token=T', '', 'refused: other-spelling'],
  ])('%s and %s', (query, body, expected) => {
    expect(findForm(body, { query })).toBe(expected);
  });
});
