import { expect, test } from 'vitest';
import type { UpstreamRequest } from '../../src/upstream/engine.ts';
import { requestHead } from '../../src/upstream/request-framing.ts';

const get: UpstreamRequest = {
  method: 'GET',
  target: '/a?b',
  fields: ['Host', 'shop', 'a', '\xe9 x'],
  body: null,
};
const stream = {} as never;

test('the head is what was decided on, in its order and spelling', () => {
  expect(requestHead(get)).toBe(
    'GET /a?b HTTP/1.1\r\nHost: shop\r\na: \xe9 x\r\nConnection: keep-alive\r\n\r\n',
  );
});

test.each<[string, UpstreamRequest['body'], string]>([
  ['GET', null, ''],
  ['DELETE', null, ''],
  ['POST', null, 'Content-Length: 0\r\n'],
  ['PATCH', Buffer.from('ab'), 'Content-Length: 2\r\n'],
  ['DELETE', Buffer.alloc(0), 'Content-Length: 0\r\n'],
  ['POST', { stream, length: 7 }, 'Content-Length: 7\r\n'],
  ['OPTIONS', { stream, length: undefined }, 'Transfer-Encoding: chunked\r\n'],
])('%s with %o is framed by its body alone', (method, body, framing) => {
  const fields = [
    'Host',
    's',
    'content-length',
    '99',
    'Transfer-Encoding',
    'gzip',
    'Connection',
    'x',
    'TE',
    'y',
  ];
  expect(requestHead({ ...get, method, body, fields })).toBe(
    `${method} /a?b HTTP/1.1\r\nHost: s\r\n${framing}Connection: keep-alive\r\n\r\n`,
  );
});

test.each<[string, Partial<UpstreamRequest>]>([
  ['a line break in a value', { fields: ['a', 'b\r\nEvil: c'] }],
  ['a bare LF in a value', { fields: ['a', 'b\nEvil: c'] }],
  ['a bare CR in a value', { fields: ['a', 'b\rc'] }],
  ['a NUL in a value', { fields: ['a', '\0'] }],
  ['a character that latin-1 would fold into a line break', { fields: ['a', '\u010a'] }],
  ['a space in a name', { fields: ['a b', 'c'] }],
  ['a colon in a name', { fields: ['a:', 'c'] }],
  ['an empty name', { fields: ['', 'c'] }],
  ['a space in the target', { target: '/a HTTP/1.1\r\n' }],
  ['a wide character in the target', { target: '/\u0120' }],
  ['an empty target', { target: '' }],
  ['a line break in the method', { method: 'GET /\r\n' }],
])('%s is never written', (_, change) => {
  expect(() => requestHead({ ...get, ...change })).toThrow(TypeError);
});
