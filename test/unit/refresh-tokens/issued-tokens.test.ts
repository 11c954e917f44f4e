import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { readIssuedTokens } from '../../../src/refresh-tokens/issue.ts';

const names = [
  {
    accessToken: 'accessToken',
    refreshToken: 'refreshToken',
    refreshExpiresIn: 'refreshExpiresIn',
  },
];

function read(body: string | Buffer, fields: readonly string[] = []) {
  const issued = readIssuedTokens(Buffer.from(body), fields, names, 1_048_576);
  return issued === 'unreadable' ? issued : issued.tokens.map(({ refreshToken }) => refreshToken);
}

const document = '{"data":{"attributes":{"accessToken":"a","refreshToken":"T","refreshExpiresIn":"60"}}}';

describe('every refresh token of an answer', () => {
  test('with the access token and the lifetime that stand beside it', () => {
    expect(readIssuedTokens(Buffer.from(document), [], names, 1_048_576)).toEqual({
      tokens: [{ refreshToken: 'T', accessToken: 'a', lifetimeMs: 60_000 }],
      accessToken: 'a',
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
  ])('that lives for %s seconds', (seconds, lifetimeMs) => {
    const body = Buffer.from(`{"refreshToken":"T","refreshExpiresIn":${seconds}}`);
    expect(readIssuedTokens(body, [], names, 1000)).toEqual({
      tokens: [{ refreshToken: 'T', accessToken: undefined, lifetimeMs }],
      accessToken: undefined,
    });
  });

  test.each<[string, string | Buffer, readonly string[] | 'unreadable']>([
    ['at the top', '{"refreshToken":"T"}', ['T']],
    ['after a byte order mark', `\ufeff${document}`, ['T']],
    ['in another spelling', '{"Refresh-token":"T"}', ['T']],
    ['anywhere', '[{"x":[{"y":{"refresh_token":"T"}}]}]', ['T']],
    ['a number', '{"refreshToken":17}', ['17']],
    ['a list, whatever stands in front', '{"refreshToken":[0,0,0,0,0,0,0,0,0,0,"T"]}', ['T']],
    ['two', `[${document},{"refreshToken":"U"}]`, ['U', 'T']],
    ['null, or empty', '[{"refreshToken":null},{"refreshToken":""}]', []],
    ['none', '{"accessToken":"a"}', []],
    ['nothing', '', []],
    ['a short text', 'OK', []],
    ['as many as are read', `[${`${document},`.repeat(8)}1]`, Array(8).fill('T')],
    ['a list of more', `{"refreshToken":[${'"T",'.repeat(8)}"T"]}`, 'unreadable'],
    ['more than a shop gives', `[${`${document},`.repeat(9)}1]`, 'unreadable'],
    ['a call', `show(${document})`, 'unreadable'],
    ['XML', '<refreshToken>T</refreshToken>', 'unreadable'],
    ['a bare token', '"def50200def50200def5"', 'unreadable'],
    ['a token as text', 'def50200def50200def5', 'unreadable'],
    ['UTF-16', Buffer.from('OK', 'utf16le'), 'unreadable'],
  ])('%s', (_, body, expected) => {
    expect(read(body)).toEqual(expected);
  });

  test('after a coding that nobody asked for', () => {
    expect(read(gzipSync(document), ['Content-Encoding', 'gzip'])).toEqual(['T']);
    expect(read(gzipSync(document), ['Content-Encoding', 'x'])).toBe('unreadable');
    expect(read(document, ['Content-Encoding', 'gzip'])).toBe('unreadable');
    expect(read(gzipSync('x'.repeat(1_048_577)), ['Content-Encoding', 'gzip'])).toBe('unreadable');
  });
});
