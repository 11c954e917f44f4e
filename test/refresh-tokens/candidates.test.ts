import { gzipSync, zstdCompressSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { findCandidates } from '../../src/refresh-tokens/candidates.ts';
import { findNamedValues, foldName } from '../../src/refresh-tokens/named-values.ts';
import { canonicalToken, createDigests } from '../../src/refresh-tokens/token-digest.ts';
import { shopEndpoints } from './token-front.ts';

const exchanges = shopEndpoints.filter(({ kind }) => kind === 'exchange');
const jsonApi = exchanges.filter(({ format }) => format === 'json-api');
const form = exchanges.filter(({ format }) => format === 'form');

function find(
  body: string | Buffer,
  {
    fields = [],
    query = '',
    endpoints = exchanges,
  }: { fields?: string[]; query?: string; endpoints?: typeof exchanges } = {},
) {
  const octets = typeof body === 'string' ? Buffer.from(body) : body;
  return findCandidates({ fields, query }, octets, endpoints);
}

const attributes = (text: string) => `{"data":{"type":"refresh-tokens","attributes":{${text}}}}`;
const part = (head: string, value: string) => `--b\r\n${head}\r\n\r\n${value}\r\n--b--\r\n`;

/** Whatever some shop could take for the tokens T (and U). */
const readings: ReadonlyArray<readonly [string, string | Buffer, readonly string[]]> = [
  ['JSON', attributes('"refreshToken":"T"'), ['T']],
  ['white space everywhere', attributes('\n "refreshToken" \t:\r\n "T" '), ['T']],
  ['snake case', attributes('"refresh_token":"T"'), ['T']],
  ['other cases', attributes('"RefreshToken":"T"'), ['T']],
  ['an escaped name', attributes('"refresh\\u0054oken":"T"'), ['T']],
  ['an escaped value', attributes('"refreshToken":"\\u0054"'), ['T']],
  ['an escaped slash', attributes('"refreshToken":"T\\/x"'), ['T/x']],
  ['the name twice', attributes('"refreshToken":"U","refreshToken":"T"'), ['U', 'T']],
  [
    'attributes twice',
    '{"data":{"attributes":{"refreshToken":"T"},"attributes":{"refreshToken":"U"}}}',
    ['T', 'U'],
  ],
  ['data in an array', `[${attributes('"refreshToken":"T"')}]`, ['T']],
  ['a value in an array', attributes('"refreshToken":["T","U"],"other":"x"'), ['T', 'U']],
  ['a number', attributes('"refreshToken": 123'), ['123']],
  ['a byte order mark', `\ufeff${attributes('"refreshToken":"T"')}`, ['T']],
  ['broken JSON', '{"refreshToken":"T",,,', ['T']],
  ['a name within a value', attributes('"note":"\\"refreshToken\\":\\"U\\"","refreshToken":"T"'), ['T']],
  ['UTF-16LE', Buffer.from(attributes('"refreshToken":"T"'), 'utf16le'), ['\0T\0', 'T']],
  ['UTF-16BE', Buffer.from(attributes('"refreshToken":"T"'), 'utf16le').swap16(), ['\0T\0', 'T']],
  ['urlencoded', 'grant_type=refresh_token&refresh_token=T', ['T']],
  ['encoded name and value', '%72efresh%5Ftoken=%54', ['T']],
  ['names that PHP folds', '+refresh.token=T&refresh%20token=U', ['T', 'U']],
  ['twice', 'refresh_token=U&refresh_token=T', ['U', 'T']],
  ['as a list', 'refresh_token[]=T', ['T']],
  ['cut at NUL', 'refresh_token%00x=T', ['T']],
  ['behind a thousand fields', `${'a=b&'.repeat(1500)}refresh_token=T`, ['T']],
  ['multipart', part('Content-Disposition: form-data; name="refresh_token"', 'T'), ['T']],
  ['multipart, bare name', part('content-disposition:form-data;name=refresh_token', 'T'), ['T']],
  ['multipart, single quotes', part("Content-Disposition: form-data; name='refresh_token'", 'T'), ['T']],
  ['multipart, folded', part('Content-Disposition: form-data;\r\n name = "refresh_token"', 'T'), ['T']],
  [
    'multipart, more fields',
    part('Content-Disposition: form-data; name="refresh_token"\r\nContent-Type: text/plain', 'T'),
    ['T'],
  ],
  ['multipart, bare LF', '--b\nContent-Disposition: form-data; name="refresh_token"\n\nT\n--b--\n', ['T']],
  [
    'multipart, twice',
    `${part('Content-Disposition: form-data; name="refresh_token"', 'T')}${part('Content-Disposition: form-data; name="refresh_token"', 'U')}`,
    ['T', 'U'],
  ],
  ['nothing', '', []],
  ['an empty value', attributes('"refreshToken":""'), []],
  ['another field', attributes('"accessToken":"T"'), []],
  ['a file name', part('Content-Disposition: form-data; filename="refresh_token"', 'T'), []],
];

describe('every token that a shop could read', () => {
  test.each(readings)('%s', (_, body, expected) => {
    expect(find(body)).toEqual(expected);
  });

  test('in the query', () => {
    expect(find('', { query: '?refresh_token=T' })).toEqual(['T']);
  });

  test.each([
    ['gzip', gzipSync],
    ['zstd', zstdCompressSync],
  ] as const)('behind %s', (coding, encode) => {
    const body = encode(Buffer.from(attributes('"refreshToken":"T"')));
    expect(find(body, { fields: ['Content-Encoding', coding] })).toEqual(['T']);
  });

  test('behind two codings', () => {
    const body = gzipSync(zstdCompressSync(Buffer.from('refresh_token=T')));
    expect(find(body, { fields: ['Content-Encoding', 'zstd, gzip'] })).toEqual(['T']);
  });

  test('a coding that is none, and a broken body, are the shop’s to judge', () => {
    expect(find('refresh_token=T', { fields: ['Content-Encoding', 'rot13'] })).toEqual([]);
    expect(find('refresh_token=T', { fields: ['Content-Encoding', 'gzip'] })).toEqual([]);
  });

  test('hidden under more than anybody sends: ambiguous', () => {
    const many = Array.from({ length: 9 }, (_, i) => `T${i}`);
    expect(find(attributes(many.map((value) => `"refreshToken":"${value}"`).join()))).toBe('ambiguous');
    expect(find(many.map((value) => `refresh_token=${value}`).join('&'))).toBe('ambiguous');
    const parts = many.map((value) => part('Content-Disposition: form-data; name="refresh_token"', value));
    expect(find(parts.join(''))).toBe('ambiguous');
    const long = `refresh_token=T&${'x'.repeat(65_536)}`;
    expect(find(long)).toBe('ambiguous');
    expect(find(gzipSync(long), { fields: ['Content-Encoding', 'gzip'] })).toBe('ambiguous');
    expect(find(gzipSync(gzipSync(long)), { fields: ['Content-Encoding', 'gzip, gzip'] })).toBe('ambiguous');
    expect(find(long.slice(0, 65_536))).toEqual(['T']);
  });
});

describe('another grant of the form endpoint is no exchange', () => {
  test.each([
    ['grant_type=password&refresh_token=T', []],
    ['grant_type=refresh_token&refresh_token=T', ['T']],
    ['refresh_token=T', ['T']],
    ['grant_type=password&grant_type=refresh_token&refresh_token=T', ['T']],
    ['grant_type=REFRESH_TOKEN+&refresh_token=T', ['T']],
    ['{"grant_type":"password"}&refresh_token=T&grant_type=refresh_token', ['T']],
  ])('%s', (body, expected) => {
    expect(find(body, { endpoints: form })).toEqual(expected);
  });

  test('a JSON:API endpoint knows no grants', () => {
    expect(find('{"grant_type":"password","refreshToken":"T"}', { endpoints: jsonApi })).toEqual(['T']);
  });
});

/** 2 MiB each: a moment where a step is linear, and a hang where one is quadratic. */
test.each<[string, string, readonly string[]]>([
  ['escaped quotes', '\\"'.repeat(1_048_576), []],
  ['open quotes', '"'.repeat(2_097_151), []],
  ['names of parts', 'name=refreshtoken;'.repeat(116_508), []],
  ['names without value', 'name="'.repeat(349_525), []],
  ['spaces', `name${' '.repeat(2_097_148)}`, []],
  ['blank lines', 'name=x\r\n\r\n'.repeat(209_715), []],
  ['fields', 'a&'.repeat(1_048_576), []],
  ['brackets', '['.repeat(2_097_152), []],
  ['a value of spaces', `refresh_token=${' '.repeat(2_097_000)}x`, ['x']],
])('linear in hostile bodies: %s', (_, body, expected) => {
  expect(findNamedValues(body, new Set([foldName('refresh_token')]))?.map((value) => value.trim())).toEqual(
    expected,
  );
});

describe('one token, one digest', () => {
  const { ofToken, ofSubject } = createDigests('a key');
  const jwt = 'eyJhbGciOiJFUzI1NiJ9.eyJqdGkiOiIxIn0';
  test.each([
    ['upper case hexadecimal', 'def50200ab', 'DEF50200AB'],
    ['white space around', 'def50200ab', ' def50200ab\r\n'],
    ['a NUL behind', 'def50200ab', 'def50200ab\0'],
    ["a JWT's other signature", `${jwt}.MEUCIQ`, `${jwt}.MEUCIR`],
    ["a JWT's padding", `${jwt}.MEUCIQ`, 'eyJhbGciOiJFUzI1NiJ9=.eyJqdGkiOiIxIn0=.MEUCIQ=='],
    ["a JWT's loose bits", `${jwt}.MEUCIQ`, 'eyJhbGciOiJFUzI1NiJ9.eyJqdGkiOiIxIn1.MEUCIQ'],
  ])('%s', (_, one, other) => {
    expect(ofToken(other)).toBe(ofToken(one));
  });

  test('other tokens, keys and kinds have others', () => {
    expect(ofToken('def50200ac')).not.toBe(ofToken('def50200ab'));
    expect(createDigests('another key').ofToken('def50200ab')).not.toBe(ofToken('def50200ab'));
    expect(ofSubject('x')).not.toBe(ofToken('x'));
    expect(ofSubject('de--21')).not.toBe(ofSubject('DE--21'));
    expect(canonicalToken('a.b')).toBe('a.b');
  });
});
