import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { readIssuedTokens } from '../../../src/refresh-tokens/issue.ts';

const names = [
  { accessToken: 'accessToken', refreshToken: 'refreshToken', refreshExpiresIn: 'refreshExpiresIn' },
];

function read(body: string | Buffer, fields: readonly string[] = []) {
  const issued = readIssuedTokens(Buffer.from(body), fields, names, 1_048_576);
  return issued === 'unreadable' ? issued : issued.tokens.map(({ refreshToken }) => refreshToken);
}

const long = 'def50200def50200';
const attributes = '"type":"opaque","expiresAt":"2030-01-01T00:00:00.000Z","refreshExpiresIn":60';
const user = `"user":{"a":[${`"${long}",`.repeat(9)}0]}`;
const document = '{"data":{"attributes":{"accessToken":"a","refreshToken":"T","refreshExpiresIn":"60"}}}';

describe('readIssuedTokens', () => {
  test('gives the access token and the lifetime beside a refresh token', () => {
    expect(readIssuedTokens(Buffer.from(document), [], names, 1_048_576)).toEqual({
      tokens: [{ refreshToken: 'T', accessToken: 'a', lifetimeMs: 60_000 }],
      accessToken: 'a',
    });
  });

  test('gives the first access token beside a token in another object', () => {
    const body = Buffer.from('{"access":{"accessToken":"a"},"refresh":{"refreshToken":"T"}}');
    expect(readIssuedTokens(body, [], names, 1000)).toMatchObject({ tokens: [{ accessToken: 'a' }] });
  });

  test('reads access token and lifetime that are in the object of the refresh token', () => {
    const inside = { value: long, accessToken: 'a', refreshExpiresIn: 60 };
    const answer = Buffer.from(JSON.stringify({ refreshToken: inside }));
    expect(readIssuedTokens(answer, [], names, 1000)).toMatchObject({
      tokens: [{ refreshToken: long, accessToken: 'a', lifetimeMs: 60_000 }],
    });
  });

  test('reads two tokens whose fields have the name of access tokens', () => {
    const fields = [{ accessToken: 'token', refreshToken: 'refresh', refreshExpiresIn: 'x' }];
    const body = Buffer.from(`{"access":{"token":"a"},"refresh":{"token":"${long}","expires":"soon"}}`);
    expect(readIssuedTokens(body, [], fields, 1000)).toMatchObject({
      tokens: [{ refreshToken: long, accessToken: 'a' }],
    });
  });

  test.each([
    ['60', 60_000],
    ['"60"', 60_000],
    ['0.5', 500],
    ['0', undefined],
    ['-1', undefined],
    ['"soon"', undefined],
    ['null', undefined],
    ['1e300', 36_500 * 86_400 * 1000],
  ])('refreshExpiresIn %s: %s ms', (seconds, lifetimeMs) => {
    const body = Buffer.from(`{"refreshToken":"T","refreshExpiresIn":${seconds}}`);
    expect(readIssuedTokens(body, [], names, 1000)).toEqual({
      tokens: [{ refreshToken: 'T', accessToken: undefined, lifetimeMs }],
      accessToken: undefined,
    });
  });

  test.each<[string, string | Buffer, readonly string[] | 'unreadable']>([
    ['a token at the top', '{"refreshToken":"T"}', ['T']],
    ['a token after a byte order mark', `\ufeff${document}`, ['T']],
    ['a token with another spelling of its name', '{"Refresh-token":"T"}', ['T']],
    ['a nested token', '[{"x":[{"y":{"refresh_token":"T"}}]}]', ['T']],
    ['a number', '{"refreshToken":17}', ['17']],
    ['a list with numbers before the token', '{"refreshToken":[0,0,0,0,0,0,0,0,0,0,"T"]}', ['T']],
    ['a token in an object', '{"refreshToken":{"value":"T","uses":1}}', ['T']],
    ['a token beside its attributes', `{"refreshToken":{"value":"${long}",${attributes}}}`, [long]],
    ["a mutation of GraphQL with the field's name", `{"refreshToken":{"refreshToken":"T",${user}}}`, ['T']],
    ['a token in a list of lists', '{"refreshToken":[["T"]]}', ['T']],
    ['two tokens', `[${document},{"refreshToken":"U"}]`, ['U', 'T']],
    ['null, or empty', '[{"refreshToken":null},{"refreshToken":""}]', []],
    ['no refresh token', '{"accessToken":"a"}', []],
    ['an empty body', '', []],
    ['a short text', 'OK', []],
    ['eight tokens', `[${`${document},`.repeat(8)}1]`, Array(8).fill('T')],
    ['a list of nine tokens', `{"refreshToken":[${'"T",'.repeat(8)}"T"]}`, 'unreadable'],
    ['nine tokens', `[${`${document},`.repeat(9)}1]`, 'unreadable'],
    ['JSON in a function call', `show(${document})`, 'unreadable'],
    ['XML', '<refreshToken>T</refreshToken>', 'unreadable'],
    ['a bare token', '"def50200def50200def5"', 'unreadable'],
    ['a token as text', 'def50200def50200def5', 'unreadable'],
    ['UTF-16', Buffer.from('OK', 'utf16le'), 'unreadable'],
  ])('%s', (_, body, expected) => {
    expect(read(body)).toEqual(expected);
  });

  test('decodes gzip up to 1 MiB; another or a wrong Content-Encoding is unreadable', () => {
    expect(read(gzipSync(document), ['Content-Encoding', 'gzip'])).toEqual(['T']);
    expect(read(gzipSync(document), ['Content-Encoding', 'x'])).toBe('unreadable');
    expect(read(document, ['Content-Encoding', 'gzip'])).toBe('unreadable');
    expect(read(gzipSync('x'.repeat(1_048_577)), ['Content-Encoding', 'gzip'])).toBe('unreadable');
  });
});
