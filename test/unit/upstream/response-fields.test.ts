import { describe, expect, test } from 'vitest';
import { hopByHopNames } from '../../../src/http/field-list.ts';
import { endToEndFields, reasonPhrase } from '../../../src/upstream/response-fields.ts';

const around = (...fields: string[]) => ['X-Before', '1', ...fields, 'X-After', '2'];
const kept = (...fields: string[]) => endToEndFields(around(...fields), 200).slice(2, -2);
const spellings = (name: string) => [name, name.toUpperCase(), name.toLowerCase()];

describe('a response field', () => {
  test.each([...hopByHopNames, 'server', 'proxy-status', 'proxy-x', 'x-debug', 'x-debug-token'])(
    '%s is dropped in any case',
    (name) => {
      for (const spelling of spellings(name)) expect(kept(spelling, 'x')).toEqual([]);
    },
  );

  const known =
    'Accept-Ranges Access-Control-Allow-Origin Cache-Control Content-Type Date ETag Expires Last-Modified ' +
    'Set-Cookie Vary Content-Length Location Servers X-Server X-Proxy X-Deb Content-Encoding ' +
    'WWW-Authenticate Tea Age Retry-After';
  test.each(known.split(' '))('each line of %s is kept in its spelling', (name) => {
    for (const spelling of spellings(name))
      expect(kept(spelling, 'x', spelling, '')).toEqual([spelling, 'x', spelling, '']);
  });

  test.each(['\t !~\x80\xff', '', ' '])('is kept with the value %j', (value) => {
    expect(kept('X-One', value, 'ETag', value)).toEqual(['X-One', value, 'ETag', value]);
  });

  test.each(['a\r\nX: y', 'a\nb', 'a\0', 'a\x7f', 'a\x1f', 'a\u0100'])(
    'is dropped with the value %j',
    (value) => {
      expect(kept('X-One', value, 'ETag', value)).toEqual([]);
    },
  );

  test.each(['', 'a b', 'a:', 'a\r', 'ä', 'a(', '"a"'])('is dropped with the name %j', (name) => {
    expect(kept(name, 'x')).toEqual([]);
  });

  test('Content-Length is dropped with status 204 only', () => {
    for (const status of [200, 203, 205, 304])
      expect(endToEndFields(['content-length', '1'], status)).toHaveLength(2);
    expect(endToEndFields(['content-length', '1', 'ETag', 'x'], 204)).toEqual(['ETag', 'x']);
  });
});

describe('Connection', () => {
  test.each(['X-One', 'x-one', 'close, X-ONE', '\tx-one ,y', 'x-two,x-one'])('%j removes X-One', (value) => {
    expect(kept('Connection', value, 'X-One', '1', 'ETag', '2')).toEqual(['ETag', '2']);
    // Also in front of Connection, and named by a second line of it.
    expect(kept('X-One', '1', 'Connection', 'close', 'connection', value)).toEqual([]);
  });

  test.each(['close', 'keep-alive', 'Close', 'x-ones', 'x', '', 'x-one\xa0'])(
    '%j does not remove X-One',
    (value) => {
      expect(kept('Connection', value, 'X-One', '1')).toEqual(['X-One', '1']);
    },
  );

  test('removes Date and Last-Modified', () => {
    expect(kept('Connection', 'date, last-modified', 'Date', '1', 'Last-Modified', '2')).toEqual([]);
  });

  test.each([
    ...['cache-control', 'content-encoding', 'content-length', 'content-type', 'etag', 'set-cookie', 'vary'],
    'www-authenticate',
  ])('does not remove %s', (name) => {
    expect(kept('Connection', name, name, 'x')).toEqual([name, 'x']);
  });
});

test.each([
  ['OK', 'OK'],
  ['', ''],
  ['a\tb \xff', 'a\tb \xff'],
  ['a\rb', undefined],
  ['a\x7f', undefined],
])('the reason phrase %j is relayed as %j', (sent, phrase) => {
  expect(reasonPhrase(sent)).toBe(phrase);
});
