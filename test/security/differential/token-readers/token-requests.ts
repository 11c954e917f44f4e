import { deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import fc from 'fast-check';
import type { WireRequest } from './wire-request.ts';

/** A request that tries to hide a token from shopward, but not from the shop. */
export interface TokenRequestCase {
  readonly path: string;
  readonly request: WireRequest;
}

/** The kinds of token that shops issue: hexadecimal, base64 with and without padding, base64url, JWT. */
export const tokens = [
  'def502003e1a9c7745b06f8d21c4e7a95b3f0d6682ce914a7be05d3f9186c2a4',
  'q8Zt5+V0cN2rLx7/YfKdWm3JhTs9GbUe4oPaXiRv6yE=',
  'kH0n2Q7xVb9sYt4LmPz1Rg',
  'aB3_dE5-fG7hI9jK1lM2nO4pQ6rS8tU0',
  'eyJhbGciOiJSUzI1NiJ9.eyJqdGkiOiI3ZjNhIiwic3ViIjoiZGUtLTIxIn0.c2lnbmF0dXJlLW9mLWl0',
] as const;

const oddNames = [
  ...[
    'grant_type',
    'x',
    'type',
    '',
    '__proto__',
    'grant[type',
    'refresh[token',
    'refresh.token',
    ' refresh_token',
  ],
  ...['refresh_token\0x', 'refresh_token[]', 'refresh_token[0]', 'data[attributes][refreshToken]'],
  ...['data[attributes][refresh_token', 'REFRESH_TOKEN', 'refreshTo\u212aen', '\ufeffrefresh_token'],
  ...['refresh%u005ftoken', '=?utf-8?B?cmVmcmVzaF90b2tlbg==?=', '=?utf-8?Q?refresh=5Ftoken?='],
  ...['data.refresh_token', '_refresh_token', 'refresh_token.', 'grant%u005ftype'],
  ...['refresh token', 'refresh-token', 'refre\u017fhToken', 'RefreshToken'],
];
const plainValues = [
  'refresh_token',
  'password',
  'refresh-tokens',
  'x',
  '',
  '100%',
  'a;b',
  '\u00e4\u{1f511}',
];

/** Spellings of a token. Most often the token is left unchanged. */
const spellings: readonly ((token: string) => string)[] = [
  ...Array.from({ length: 20 }, () => (token: string) => token),
  (token) => `${token}=`,
  (token) => `${token}==`,
  (token) => token.replace(/=+$/, ''),
  (token) => `${token.slice(0, 7)}!${token.slice(7)}`,
  (token) => `${token.slice(0, 7)}-${token.slice(7)}`,
  (token) => `${token.slice(0, 7)}.${token.slice(7)}`,
  (token) => `${token.slice(0, 7)}\r\n${token.slice(7)}`,
  (token) => ` ${token} `,
  (token) => token.toUpperCase(),
  (token) => token.replaceAll('+', '-').replaceAll('/', '_'),
  (token) => `${token}A`,
  (token) => `${token}zz`,
  (token) => `${token}=AAAA`,
  (token) => `${token}\0`,
  (token) => token.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A')),
];

const spelled = fc.tuple(fc.constantFrom(...tokens), fc.constantFrom(...spellings));
const value = fc.oneof(
  { weight: 3, arbitrary: spelled.map(([token, spell]) => spell(token)) },
  { weight: 2, arbitrary: fc.constantFrom(...plainValues) },
  { weight: 1, arbitrary: fc.string({ maxLength: 6 }) },
);
const name = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom('refresh_token', 'refreshToken') },
  { weight: 4, arbitrary: fc.constantFrom(...oddNames) },
  { weight: 1, arbitrary: fc.string({ maxLength: 4 }) },
  // An escaped form inside a name: a server that reads any body as a form finds it.
  {
    weight: 2,
    arbitrary: fc
      .tuple(fc.constantFrom('refresh%5Ftoken', '%72efreshToken', 'refresh_token'), spelled)
      .map(([form, [token, spell]]) => `&${form}=${encodeURIComponent(spell(token))}&`),
  },
);
const pairs = fc.array(fc.tuple(name, value), { minLength: 1, maxLength: 3 });

const escapes = fc.constantFrom<((text: string) => string)[]>(
  (text) => text,
  (text) => encodeURIComponent(text.toWellFormed()),
  (text) => encodeURIComponent(encodeURIComponent(text.toWellFormed())),
  (text) =>
    encodeURIComponent(text.toWellFormed()).replace(/[a-z]/, (one) => `%${one.charCodeAt(0).toString(16)}`),
);
const form = fc
  .tuple(pairs, escapes, fc.constantFrom('&', '&', '&', ';', '&amp;', '\r\n'))
  .map(([all, spell, separator]) => all.map((pair) => pair.map(spell).join('=')).join(separator));

const jsonQuirks = fc.constantFrom<((text: string) => string)[]>(
  ...Array.from({ length: 12 }, () => (text: string) => text),
  (text) => `/* x */${text}`,
  (text) => `${text}// x`,
  (text) => `\ufeff${text}`,
  (text) => text.replace(/\}$/, ',}'),
  (text) => text.replaceAll('"', "'"),
  (text) => text.replace('resh', '\\resh'),
  (text) => text.replace('resh', '\\u0072esh'),
  (text) => text.replace('resh', '\\u017fh'),
  (text) => `${text}{}`,
  (text) => `${'['.repeat(40)}${text}${']'.repeat(40)}`,
  (text) => `[${text}]`,
  (text) => `${text}\0`,
);
const json = fc
  .tuple(pairs, jsonQuirks, fc.constantFrom('', 'attributes', 'data'))
  .map(([all, quirk, parent]) => {
    // Not by JSON.stringify, since a name may occur twice.
    const inner = `{${all.map(([name, one]) => `${JSON.stringify(name)}:${JSON.stringify(one)}`).join(',')}}`;
    const nested =
      parent === '' ? inner : `{"data":${parent === 'data' ? inner : `{"attributes":${inner}}`}}`;
    return quirk(nested);
  });

const asItIs = (body: Buffer) => body;
const codings: Readonly<Record<string, (body: Buffer) => Buffer>> = {
  '': asItIs,
  x: asItIs,
  identity: asItIs,
  gzip: gzipSync,
  'gzip, over plain': asItIs,
  'gzip, with more after': (body) => Buffer.concat([gzipSync('x'), body]),
  deflate: deflateSync,
  'deflate, raw': deflateRawSync,
};

const utf8 = (text: string) => Buffer.from(text);
const charsets: Readonly<Record<string, (text: string) => Buffer>> = {
  'utf-8': utf8,
  'utf-16le': (text) => Buffer.from(text, 'utf16le'),
  'utf-16be': (text) => Buffer.from(text, 'utf16le').swap16(),
  'utf-32': (text) => Buffer.from(Uint32Array.from([...text], (one) => one.codePointAt(0) ?? 0).buffer),
  'iso-8859-1': (text) => Buffer.from(text, 'latin1'),
  ibm037: (text) => Buffer.from([...text].map(toEbcdic)),
};

/** Runs of consecutive characters of the code page, each with its first code. */
const ebcdicRuns: readonly (readonly [number, string])[] = [
  ...([
    [0x81, 'abcdefghi'],
    [0x91, 'jklmnopqr'],
    [0xa2, 'stuvwxyz'],
    [0xf0, '0123456789'],
  ] as const),
  ...([
    [0xc1, 'ABCDEFGHI'],
    [0xd1, 'JKLMNOPQR'],
    [0xe2, 'STUVWXYZ'],
    [0x40, ' '],
    [0x4b, '.'],
  ] as const),
  ...([
    [0x4e, '+'],
    [0x50, '&'],
    [0x60, '-/'],
    [0x6b, ',%_'],
    [0x7a, ':'],
    [0x7e, '="'],
    [0xc0, '{'],
    [0xd0, '}'],
  ] as const),
];

function toEbcdic(one: string): number {
  const [start, run] = ebcdicRuns.find(([, letters]) => letters.includes(one)) ?? [0x6f, one];
  return start + run.indexOf(one);
}

const types = [
  ...['application/json', 'application/vnd.api+json', 'application/x-www-form-urlencoded'],
  ...['multipart/form-data; boundary=b', 'text/plain', '', 'x', 'application/json, text/plain'],
  ...['application/json; boundary=b', 'Application/X-WWW-Form-Urlencoded'],
];

/** A body of any format, most often with the right type. */
export const tokenRequests: fc.Arbitrary<TokenRequestCase> = fc
  .record({
    shape: fc.oneof(
      fc.tuple(form, fc.constant('application/x-www-form-urlencoded')),
      fc.tuple(json, fc.constantFrom('application/json', 'application/vnd.api+json')),
    ),
    type: fc.oneof(
      { weight: 6, arbitrary: fc.constant(undefined) },
      { weight: 1, arbitrary: fc.constantFrom(...types) },
    ),
    charset: fc.oneof(
      { weight: 8, arbitrary: fc.constant('') },
      { weight: 1, arbitrary: fc.constantFrom(...Object.keys(charsets)) },
    ),
    isCharsetSaid: fc.boolean(),
    coding: fc.oneof(
      { weight: 8, arbitrary: fc.constant('') },
      { weight: 1, arbitrary: fc.constantFrom(...Object.keys(codings)) },
    ),
    query: fc.oneof({ weight: 6, arbitrary: fc.constant('') }, form),
    method: fc.oneof(
      { weight: 8, arbitrary: fc.constant('POST') },
      fc.constantFrom('PUT', 'PATCH', 'DELETE', 'OPTIONS', 'GET'),
    ),
    path: fc.constantFrom('/token', '/refresh-tokens', '/refresh-tokens/x', '/Token/'),
  })
  .map(({ shape: [text, ownType], type, charset, isCharsetSaid, coding, query, method, path }) => {
    const contentType = (type ?? ownType) + (charset !== '' && isCharsetSaid ? `; charset=${charset}` : '');
    const octets = (charsets[charset] ?? utf8)(text);
    const body = (codings[coding] ?? asItIs)(octets).toString('base64');
    const contentEncoding = coding.split(',')[0] ?? '';
    return { path, request: { method, query: writable(query), contentType, contentEncoding, body } };
  });

/** Escapes what a request target may not contain. */
function writable(query: string): string {
  return query.toWellFormed().replace(/[^!-~]|["#<>\\^`{|}]/gu, (one) => encodeURIComponent(one));
}
