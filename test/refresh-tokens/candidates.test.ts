import { deflateRawSync, gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { decode } from '../../src/refresh-tokens/plain-fields.ts';
import { canonicalToken, createDigests, isPlainToken } from '../../src/refresh-tokens/token-digest.ts';
import { findCandidate } from '../../src/refresh-tokens/token-request.ts';
import { shopEndpoints } from './token-front.ts';

const refreshes = shopEndpoints.filter(({ kind }) => kind === 'exchange');
const jsonApi = refreshes.filter(({ format }) => format === 'json-api');
const form = refreshes.filter(({ format }) => format === 'form');

interface Sent {
  readonly type?: string | readonly string[];
  readonly fields?: readonly string[];
  readonly query?: string;
  readonly endpoints?: typeof refreshes;
}

/** The token, `none`, or why the request is not plain. */
function find(body: string | Buffer, { type, fields = [], query = '', endpoints = jsonApi }: Sent = {}) {
  const octets = typeof body === 'string' ? Buffer.from(body) : body;
  const types = type === undefined ? ['application/json'] : [type].flat();
  const all = [...types.flatMap((one) => ['Content-Type', one]), ...fields];
  const found = findCandidate({ fields: all, query }, octets, endpoints);
  return 'notPlain' in found ? `not plain: ${found.notPlain}` : (found.token ?? 'none');
}

const formType = 'application/x-www-form-urlencoded';
const findForm = (body: string | Buffer, more: Sent = {}) =>
  find(body, { type: formType, endpoints: form, ...more });
const findMultipart = (body: string | Buffer, more: Sent = {}) =>
  find(body, { type: 'multipart/form-data; boundary=b', endpoints: form, ...more });

const attributes = (text: string) => `{"data":{"type":"refresh-tokens","attributes":{${text}}}}`;
const good = attributes('"refreshToken":"T"');
const part = (head: string, value = 'T') => `--b\r\n${head}\r\n\r\n${value}\r\n--b--\r\n`;
const partNamed = (name: string) => part(`Content-Disposition: form-data; ${name}`);

describe('JSON', () => {
  test.each<[string, string, string]>([
    ['as Glue has it', good, 'T'],
    ['at the top', '{"refreshToken":"T"}', 'T'],
    ['white space', attributes('\n "refreshToken" \t:\r\n "T" '), 'T'],
    [
      'escapes in the value, as PHP, .NET and Gson write them',
      '{"refreshToken":"1\\/\\u002b\\u003d"}',
      '1/+=',
    ],
    ['other names beside it', attributes('"refreshTokenId":"x","refreshToken":"T"'), 'T'],
    ['nothing', '{}', 'none'],
    ['empty', '{"refreshToken":""}', 'none'],
    ['null', '{"refreshToken":null}', 'none'],
    ['an access token', attributes('"accessToken":"T"'), 'none'],
    ['snake case', '{"refresh_token":"T"}', 'not plain: other-spelling'],
    ['another case', '{"RefreshToken":"T"}', 'not plain: other-spelling'],
    ['an escaped name', '{"refresh\\u0054oken":"T"}', 'not plain: other-spelling'],
    ['the Kelvin sign, which Go takes for a k', '{"refreshTo\u212aen":"T"}', 'not plain: other-spelling'],
    ['the same, escaped', '{"refreshTo\\u212aen":"T"}', 'not plain: other-spelling'],
    ['a long s', '{"refre\u017fhToken":"T"}', 'not plain: other-spelling'],
    [
      'every letter of full width',
      '{"\uff52\uff45\uff46\uff52\uff45\uff53\uff48\uff34\uff4f\uff4b\uff45\uff4e":"T"}',
      'not plain: other-spelling',
    ],
    ['letters of full width', '{"\uff52efreshToken":"T"}', 'not plain: other-spelling'],
    ['accents', '{"r\u00e9freshToken":"T"}', 'not plain: other-spelling'],
    ['a NUL after the name', '{"refreshToken\\u0000":"T"}', 'not plain: other-spelling'],
    ['a lone surrogate in the name', '{"refreshToken\\ud800":"T"}', 'not plain: other-spelling'],
    ['twice', '{"refreshToken":"U","refreshToken":"T"}', 'not plain: repeated'],
    ['in two places', `[${good},${good}]`, 'not plain: repeated'],
    ['in two spellings', '{"refreshToken":"U","refresh_token":"T"}', 'not plain: other-spelling'],
    ['a list', '{"refreshToken":["T"]}', 'not plain: not-text'],
    ['a number', '{"refreshToken":1}', 'not plain: not-text'],
    ['an object', '{"refreshToken":{"x":"T"}}', 'not plain: not-text'],
    ['a comment', `/* */${good}`, 'not plain: syntax'],
    ['an escape that Ruby takes', '{"refreshToken":"\\d"}', 'not plain: syntax'],
    ['a byte order mark', `\ufeff${good}`, 'not plain: syntax'],
    ['a comma too many', '{"refreshToken":"T",}', 'not plain: syntax'],
    ['single quotes', "{'refreshToken':'T'}", 'not plain: syntax'],
    ['something after it', `${good}{}`, 'not plain: syntax'],
    ['NaN', '{"refreshToken":"T","x":NaN}', 'not plain: syntax'],
    ['a NUL', `${good}\0`, 'not plain: charset'],
    ['33 levels', `${'['.repeat(33)}${']'.repeat(33)}`, 'not plain: too-many-fields'],
    ['a form in a value', '{"x":"&refreshToken=T&"}', 'not plain: other-spelling'],
    ['an escape of forms in a name', '{"refresh%54oken":"T"}', 'not plain: other-spelling'],
    ['a form in a name', '{"&refreshToken=T&":1}', 'not plain: other-spelling'],
    ['an escaped form in a name', '{"&refresh%54oken=T&":1}', 'not plain: other-spelling'],
    [
      'a form escaped from its first letter on in a name',
      '{"&%72efreshToken=T&":""}',
      'not plain: other-spelling',
    ],
    ['an escaped form in a value', '{"x":"&refresh%54oken=T&"}', 'not plain: other-spelling'],
    ['JSON in a value', '{"x":"{\\"refreshToken\\":\\"T\\"}"}', 'not plain: other-spelling'],
    ['a form in a name', '{"&refreshToken=T&":1}', 'not plain: other-spelling'],
  ])('%s', (_, body, expected) => {
    expect(find(body)).toBe(expected);
  });

  test('a grant of another object than the token is not its grant', () => {
    const apart = '[{"grant_type":"password"},{"refresh_token":"T"}]';
    expect(find(apart, { endpoints: form })).toBe('T');
    expect(find('{"grant_type":"password","refresh_token":"T"}', { endpoints: form })).toBe('none');
  });

  test('a short name whose characters some parsers expand', () => {
    const endpoints = jsonApi.map((one) => ({ ...one, fields: { ...one.fields, refreshToken: 'telToken' } }));
    expect(find('{"\u2121Token":"T"}', { endpoints })).toBe('not plain: other-spelling');
    expect(find('{"x":"&\u2121Token="}', { endpoints })).toBe('not plain: other-spelling');
    expect(find('{"lToken":"T"}', { endpoints })).toBe('none');
  });

  test.each([
    ['UTF-16LE', Buffer.from(good, 'utf16le')],
    ['UTF-16BE', Buffer.from(good, 'utf16le').swap16()],
    ['UTF-32LE', Buffer.from(Uint32Array.from([...good], (one) => one.codePointAt(0) ?? 0).buffer)],
    ['Latin-1', Buffer.from('{"refreshToken":"T","x":"\u00e9"}', 'latin1')],
  ])('%s', (_, body) => {
    expect(find(body)).toBe('not plain: charset');
  });
});

describe('a form', () => {
  test('a name that has to be escaped is plain as it stands, and as every encoder escapes it', () => {
    const endpoints = form.map((one) => ({ ...one, fields: { ...one.fields, refreshToken: 'auth[token]' } }));
    const findIn = (body: string) => findForm(body, { endpoints });
    expect(findIn('auth[token]=T')).toBe('T');
    expect(findIn('auth%5Btoken%5D=T')).toBe('T');
    expect(findIn('auth%5btoken%5d=T')).toBe('not plain: other-spelling');
    expect(findIn('auth%5Btoken]=T')).toBe('not plain: other-spelling');
  });

  test('an escape of every octet, in either case', () => {
    for (let octet = 0; octet < 128; octet += 1) {
      const hex = octet.toString(16).padStart(2, '0');
      const text = String.fromCharCode(octet);
      expect([decode(`%${hex}`), decode(`%${hex.toUpperCase()}`)]).toEqual([text, text]);
    }
    for (const bad of ['%', '%4', '%4g', '%g4', '%/0', '%0:', '%`0', '%0@']) expect(decode(bad)).toBe(bad);
    expect(decode('a+%2B%e2%82%ac%ff')).toBe('a +\u20ac\ufffd');
  });

  test.each<[string, string, string]>([
    ['as RFC 6749 has it', 'grant_type=refresh_token&refresh_token=T&client_id=a&client_secret=b', 'T'],
    ['without a grant', 'refresh_token=T', 'T'],
    ['escapes in the value', 'refresh_token=1%2F%2F%2b', '1//+'],
    ['another grant', 'grant_type=password&username=a&password=b&scope=c', 'none'],
    ['a grant that is no name, and nothing to Go', 'grant_type=100%&refresh_token=T', 'T'],
    ['the same with a semicolon', 'grant_type=a;b&refresh_token=T', 'T'],
    ['an extension grant', 'grant_type=urn:ietf:params:oauth:grant-type:jwt-bearer&refresh_token=T', 'none'],
    ['another grant beside a token', 'grant_type=password&refresh_token=T', 'none'],
    [
      'a password of any kind',
      'grant_type=password&password=%F0%9F%94%91+%C3%A4;b%3D%26%22%7B%5B100%',
      'none',
    ],
    ['brackets in other names', 'scope[]=a&scope[]=b&refresh_token=T', 'T'],
    ['a scope that is called so', 'scope=openid+refresh_token&refresh_token=T', 'T'],
    ['an open bracket, which PHP takes for _', 'refresh[token=T', 'not plain: other-spelling'],
    ['the same, escaped', 'refresh%5Btoken=T', 'not plain: other-spelling'],
    ['the same of the grant', 'grant[type=refresh_token&refresh_token=T', 'not plain: other-spelling'],
    ['a nested name', 'data[attributes][refresh_token]=T', 'not plain: other-spelling'],
    ['a list', 'refresh_token[]=T', 'not plain: other-spelling'],
    ['a dot', 'refresh.token=T', 'not plain: other-spelling'],
    ['a space in front', '+refresh_token=T', 'not plain: other-spelling'],
    ['cut at NUL', 'refresh_token%00x=T', 'not plain: other-spelling'],
    ['an escaped letter', '%72efresh_token=T', 'not plain: other-spelling'],
    ['escaped twice', 'refresh%255Ftoken=T', 'not plain: other-spelling'],
    ['its bracket escaped twice', 'refresh%255Btoken=T', 'not plain: other-spelling'],
    ['camel case', 'refreshToken=T', 'not plain: other-spelling'],
    ['a semicolon between', 'a=b;refresh_token=T', 'not plain: other-spelling'],
    ['an entity between', 'a=b&amp;refresh_token=T', 'not plain: other-spelling'],
    ['twice', 'refresh_token=U&refresh_token=T', 'not plain: repeated'],
    ['once alone, once with a value', 'refresh_token&refresh_token=T', 'not plain: repeated'],
    ['two grants', 'grant_type=password&grant_type=refresh_token&refresh_token=T', 'not plain: repeated'],
    ['JSON', '{"refresh_token":"T"}', 'not plain: syntax'],
    ['JSON with an escape', '{"refresh_t\\u006fken":"T"}', 'not plain: syntax'],
    ['JSON after a comment', '/**/{"refresh_t\\u006fken":"T"}', 'not plain: syntax'],
    ['XML', '<refresh_token>T</refresh_token>', 'not plain: syntax'],
    ['JSON in a value', 'x={"refresh_token":"T"}', 'not plain: other-spelling'],
    ['a part in a value', 'x=name="refresh_token"\r\n\r\nT', 'not plain: other-spelling'],
    ['after many separators, between which nothing stands', `${'&'.repeat(300)}refresh_token=T&`, 'T'],
    ['after more than PHP reads', `${'a=b&'.repeat(300)}refresh_token=T`, 'not plain: too-many-fields'],
  ])('%s', (_, body, expected) => {
    expect(findForm(body)).toBe(expected);
  });

  test('octets that are no UTF-8', () => {
    expect(findForm(Buffer.from('password=\xe4&refresh_token=T', 'latin1'))).toBe('not plain: charset');
  });
});

describe('multipart/form-data', () => {
  test('a boundary that only lenient readers see, and a part without a blank line', () => {
    const other = 'Content-Disposition: form-data; name=ab';
    expect(findMultipart(part(other, 'x'))).toBe('none');
    expect(findMultipart(part(other, 'x\n--b'))).toBe('not plain: syntax');
    expect(findMultipart(`--b\r\n${other}\r\n--b--\r\n`)).toBe('not plain: syntax');
  });

  const name = 'name="refresh_token"';
  test.each<[string, string, string]>([
    ['as curl, fetch and requests make it', partNamed(name), 'T'],
    ['without the last line feed', partNamed(name).slice(0, -2), 'T'],
    [
      'as .NET makes it',
      part('Content-Type: text/plain; charset=utf-8\r\nContent-Disposition: form-data; name=refresh_token'),
      'T',
    ],
    ['as OkHttp makes it', part(`Content-Disposition: form-data; ${name}\r\nContent-Length: 1`), 'T'],
    ['an open bracket', partNamed('name="refresh[token"'), 'not plain: other-spelling'],
    ['no closing quote', partNamed('name="refresh_token'), 'not plain: syntax'],
    ['an extended name', partNamed("name*=UTF-8''refresh_token"), 'not plain: syntax'],
    ['a continued name', partNamed('name*0="refresh_";name*1="token"'), 'not plain: syntax'],
    ['two names', partNamed('name="x"; name="refresh_token"'), 'not plain: syntax'],
    ['a file', partNamed(`${name}; filename="x"`), 'not plain: syntax'],
    ['single quotes', partNamed("name='refresh_token'"), 'not plain: syntax'],
    ['an escape', partNamed('name="refresh\\_token"'), 'not plain: syntax'],
    ['folded', part('Content-Disposition: form-data;\r\n name="refresh_token"'), 'not plain: syntax'],
    [
      'quoted-printable',
      part(`Content-Disposition: form-data; ${name}\r\nContent-Transfer-Encoding: quoted-printable`),
      'not plain: syntax',
    ],
    [
      'another charset',
      part(`Content-Disposition: form-data; ${name}\r\nContent-Type: text/plain; charset=utf-7`),
      'not plain: syntax',
    ],
    ['bare line feeds', partNamed(name).replaceAll('\r\n', '\n'), 'not plain: syntax'],
    [
      'a part after a bare line feed',
      partNamed('name="x"').replace('T\r\n', `T\n${partNamed(name)}`),
      'not plain: syntax',
    ],
    ['something in front', `x\r\n${partNamed(name)}`, 'not plain: syntax'],
    ['something after', `${partNamed(name)}${partNamed(name)}`, 'not plain: syntax'],
    ['no end', partNamed(name).replace('--b--', '--b'), 'not plain: syntax'],
  ])('%s', (_, body, expected) => {
    expect(findMultipart(body)).toBe(expected);
  });
});

test('a grant counts where the token is', () => {
  const findJson = (body: string) => find(body, { endpoints: form });
  expect(findJson('{"grant_type":"password","refresh_token":"T"}')).toBe('none');
  expect(findJson('{"data":{"grant_type":"password"},"refresh_token":"T"}')).toBe('T');
  expect(findJson('{"grant_type":"password","data":{"refresh_token":"T"}}')).toBe('T');
});

describe('type and coding', () => {
  test.each([
    'application/json',
    'application/json; charset=utf-8',
    'application/json;charset=UTF-8',
    'application/json; charset="utf-8"',
    'Application/JSON',
    'application/vnd.api+json',
    'application/vnd.api+json; version=1.1',
    'application/vnd.api+json; profile="http://example.com/last-modified"',
  ])('%s', (type) => {
    expect(find(good, { type })).toBe('T');
  });

  test.each<[string, string | string[]]>([
    ['content-type', []],
    ['content-type', ['application/json', 'application/json']],
    ['content-type', 'application/json, text/plain'],
    ['content-type', 'text/plain'],
    ['content-type', 'application/json; boundary=b'],
    ['content-type', 'application/json; charset=utf-8; charset=utf-16'],
    ['content-type', 'application/json; charset=utf-8 x'],
    ['content-type', "application/json; charset*=utf-8''utf-8"],
    ['content-type', 'multipart/form-data'],
    ['content-type', 'multipart/form-data; boundary="b c"'],
    ['content-type', 'multipart/form-data; boundary=b; boundary=c'],
    ['content-type', 'multipart/mixed; boundary=b'],
    ['charset', 'application/json; charset=ibm037'],
    ['charset', 'application/x-www-form-urlencoded; charset=utf-16'],
  ])('%s: %s', (why, type) => {
    expect(find(good, { type })).toBe(`not plain: ${why}`);
  });

  test.each(['x', 'gzip', 'br', 'deflate', 'utf-8', 'identity', ''])('a coding: %j', (coding) => {
    for (const body of [
      good,
      gzipSync(good),
      deflateRawSync(good),
      Buffer.concat([gzipSync('x'), Buffer.from(good)]),
    ]) {
      expect(find(body, { fields: ['Content-Encoding', coding] })).toBe('not plain: content-coding');
    }
    expect(find(good, { fields: ['Content-Transfer-Encoding', coding] })).toBe('not plain: content-coding');
  });

  test('no body has no type', () => {
    expect(find('', { type: 'x' })).toBe('none');
  });

  test('a form for JSON, and the other way about', () => {
    expect(find('refreshToken=T')).toBe('not plain: syntax');
    expect(find(good, { type: formType })).toBe('not plain: syntax');
  });

  test('more than 64 KiB', () => {
    const long = `refresh_token=T&x=${'x'.repeat(65_536)}`;
    expect(findForm(long)).toBe('not plain: too-long');
    expect(findForm(long.slice(0, 65_536))).toBe('T');
  });
});

describe('the query', () => {
  test.each<[string, string, string]>([
    ['?refresh_token=T', '', 'T'],
    ['?refresh_token=T', 'grant_type=refresh_token', 'T'],
    ['?include=x&a[b]=c', 'refresh_token=T', 'T'],
    ['?refresh_token=T', 'refresh_token=T', 'not plain: repeated'],
    ['?refresh[token=T', '', 'not plain: other-spelling'],
    ['?grant_type=refresh_token', 'grant_type=password&refresh_token=T', 'not plain: repeated'],
    ['?grant_type=password', 'refresh_token=T', 'T'],
    ['?', '', 'none'],
  ])('%s and %s', (query, body, expected) => {
    expect(findForm(body, { query })).toBe(expected);
  });
});

/** 64 KiB or more each: a moment where a step is linear, and a hang where one is quadratic. */
test.each<[string, string | Buffer]>([
  ['quotes', '"'.repeat(65_536)],
  ['escaped quotes', `"${'\\"'.repeat(32_766)}"`],
  ['names', `{${'"a":1,'.repeat(10_000)}"b":1}`],
  ['ligatures', `{"refreshToken":1,"${'\ufdfa'.repeat(21_000)}":1}`],
  ['combining marks', `{"${'\u0315\u0300'.repeat(16_000)}":1}`],
  ['texts that hide nothing', `["${'refresh'.repeat(9000)};"]`],
  ['brackets', '['.repeat(65_536)],
])('linear in hostile bodies: %s', (_, body) => {
  expect(find(body)).toMatch(/^(?:none|not plain)/);
  expect(findForm(body)).toMatch(/^(?:none|not plain)/);
  expect(findMultipart(`--b\r\n${body}`)).toMatch(/^(?:none|not plain)/);
});

describe('what a token consists of', () => {
  test.each([
    'def50200ab',
    'eyJhbGciOiJFUzI1NiJ9.eyJqdGkiOiIxIn0.MEUCIQ',
    '1//0gFx-_y',
    'v1.MjAy~x',
    'Atzr|IwEBIabc',
    'M.C105_BL2.-CTN!x*y$$',
    'v^1.1#i^1#p^3#t^Ul4x==',
    '3f0c7f2e-5f0a-4b64-8f0e-7c1f3f2d9a55',
  ])('%s', (token) => expect(isPlainToken(token)).toBe(true));

  test.each([
    'T=x',
    'T===',
    'T ',
    ' T',
    'T\n',
    'T\0',
    'T%41',
    'T"',
    'T\\',
    'T;',
    'T,',
    'T&',
    'T<',
    'Té',
    '=',
    '',
  ])('%j is none', (token) => expect(isPlainToken(token)).toBe(false));
});

describe('one token, one digest', () => {
  const { ofToken, ofInterpretations, ofSubject } = createDigests('a key');
  const jwt = 'eyJhbGciOiJFUzI1NiJ9.eyJqdGkiOiIxIn0';
  const base64 = 'kH0n2Q7xVb9sYt4LmPz1Rg';
  const hex = 'def50200'.repeat(8);
  test.each([
    ['upper case hexadecimal', 'def50200ab', 'DEF50200AB'],
    ['white space around', 'def50200ab', ' def50200ab\r\n'],
    ['a NUL after', 'def50200ab', 'def50200ab\0'],
    ["a JWT's other signature", `${jwt}.MEUCIQ`, `${jwt}.MEUCIR`],
    ["a JWT's padding", `${jwt}.MEUCIQ`, 'eyJhbGciOiJFUzI1NiJ9=.eyJqdGkiOiIxIn0=.MEUCIQ=='],
    ["a JWT's loose bits", `${jwt}.MEUCIQ`, 'eyJhbGciOiJFUzI1NiJ9.eyJqdGkiOiIxIn1.MEUCIQ'],
    ['padding', base64, `${base64}==`],
    ['loose bits', base64, base64.replace(/g$/, 'h')],
    ['a character that is no base64', base64, `${base64.slice(0, 9)}!${base64.slice(9)}`],
    ['a line break', base64, `${base64.slice(0, 9)}\r\n${base64.slice(9)}`],
    ['the other alphabet', `${base64}-_`, `${base64}+/`],
    ['one character more than groups of four', `${base64}ab`, `${base64}abc`],
    ['half an octet more of hexadecimal', hex, `${hex}a`],
  ])('%s', (_, one, other) => {
    expect(ofToken(other)).toBe(ofToken(one));
  });

  test.each([
    ['a hyphen, which only some decoders know', base64, `${base64.slice(0, 9)}-${base64.slice(9)}`],
    ['a dot', base64, `${base64.slice(0, 9)}.${base64.slice(9)}`],
    ['hexadecimal up to the first other letter', hex, `${hex}zz`],
  ])('among its interpretations: %s', (_, one, other) => {
    expect(ofInterpretations(one)).toEqual([ofToken(one)]);
    expect(ofInterpretations(other)).toContain(ofToken(one));
    expect(ofInterpretations(other)[0]).toBe(ofToken(other));
  });

  test('other tokens, keys and kinds have others', () => {
    expect(ofToken('def50200ac')).not.toBe(ofToken('def50200ab'));
    expect(createDigests('another key').ofToken('def50200ab')).not.toBe(ofToken('def50200ab'));
    expect(ofSubject('x')).not.toBe(ofToken('x'));
    expect(ofSubject('de--21')).not.toBe(ofSubject('DE--21'));
    expect(canonicalToken('a.b')).toBe('a.b');
    expect(ofToken('v4.local.Zm9vYmFy')).not.toBe(ofToken('v4.local.Zm9vYmF6'));
    for (const name of ['refresh-token-number-', 'rt_0000000000000000000000', 'user.17.refresh.token.']) {
      expect(ofInterpretations(`${name}17`)).not.toEqual(ofInterpretations(`${name}18`));
    }
  });
});
