import { describe, expect, test } from 'vitest';
import {
  framingFault,
  isBodiless,
  maySucceed,
  ResponseHeadCheck,
} from '../../src/upstream/response-framing.ts';

const maxBytes = 200;
/** What is said of a response that comes in pieces of so many octets. */
function check(text: string, size = text.length, limit = maxBytes) {
  const octets = Buffer.from(text, 'latin1');
  const reader = new ResponseHeadCheck(limit);
  reader.begin();
  for (let at = 0; at < octets.length; at += size) {
    const piece = octets.subarray(at, at + size);
    const fault = reader.read(piece, piece.length);
    if (fault !== undefined) return fault;
  }
  return reader.isDone;
}
const sizes = (text: string) => [text.length, 1, 2, 3, 7];

describe('a head', () => {
  test.each([
    'HTTP/1.1 200 OK\r\n\r\n',
    'HTTP/1.0 200\r\n\r\n',
    'HTTP/1.1 200 \r\nA:\r\n\r\n',
    'HTTP/1.1 404 \tNot\xff\r\nA: b\r\nC:\td\xff\r\n\r\n',
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n',
    'HTTP/1.1 200 OK\r\nTransfer-Encoding:\tChunked\r\n\r\n',
    'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\n\r\nbody\r\n\r\n',
  ])('%j', (text) => {
    expect(sizes(text).map((size) => check(text, size))).toEqual([true, true, true, true, true]);
  });

  const bad = 'not the head of a response';
  const coding = 'a transfer coding that nobody asked for';
  test.each([
    ['HTTP/2.0 200 OK\r\n\r\n', bad],
    ['HTTP/1.2 200 OK\r\n\r\n', bad],
    ['HTTP/1.1 20 OK\r\n\r\n', bad],
    ['HTTP/1.1 2000 OK\r\n\r\n', bad],
    ['HTTP/1.1 200OK\r\n\r\n', bad],
    ['HTTP/1.1 200 O\x7fK\r\n\r\n', bad],
    ['HTTP/1.1 200 OK\r\r\nA: b\r\n\r\n', bad],
    ['HTTP/1.1 200 OK\nA: b\r\n\r\n', bad],
    ['HTTP/1.1 200 OK\r\nA : b\r\n\r\n', bad],
    ['HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n', bad],
    ['HTTP/1.1 200 OK\r\nA: \0\r\n\r\n', bad],
    ['HTTP/1.1 200 OK\r\n: b\r\n\r\n', bad],
    ['HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\rA: b\r\n\r\n', bad],
    ['HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n', coding],
    ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked \r\n\r\n', coding],
    ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\xa0\r\n\r\n', coding],
    ['HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n', coding],
    ['HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nTransfer-Encoding:\r\n\r\n', coding],
  ])('%j: %s', (text, fault) => {
    expect(sizes(text).map((size) => check(text, size))).toEqual(Array(5).fill(fault));
  });

  test('may be as long as it may, interim ones and all, and not an octet longer', () => {
    const interim = 'HTTP/1.1 100 Continue\r\n\r\n';
    const ofLength = (length: number) => {
      const text = `${interim}HTTP/1.1 200 OK\r\nA: \r\n\r\n`;
      return text.replace('A: ', `A: ${'x'.repeat(length - text.length)}`);
    };
    for (const size of [1, 64, 1000]) {
      expect(check(ofLength(maxBytes), size)).toBe(true);
      expect(check(ofLength(maxBytes + 1), size)).toBe('response fields are too long');
      // What follows a head is none of it.
      expect(check(`${ofLength(maxBytes)}${'x'.repeat(1000)}`, size)).toBe(true);
    }
  });

  test('512 interim ones are the most', () => {
    const many = (count: number) => `${'HTTP/1.1 100 C\r\n\r\n'.repeat(count)}HTTP/1.1 200 OK\r\n\r\n`;
    expect(check(many(512), 1000, 1_000_000)).toBe(true);
    expect(check(many(513), 1000, 1_000_000)).toBe('too many interim responses');
  });

  test('is over when it is, and the next one begins anew', () => {
    const reader = new ResponseHeadCheck(20);
    for (let i = 0; i < 3; i += 1) {
      reader.begin();
      expect([reader.isDone, reader.text]).toEqual([false, '']);
      // An octet beyond `length` is not of it.
      const piece = Buffer.from('HTTP/1.1 200 \r\n\r\n!');
      expect(reader.read(piece, 16)).toBeUndefined();
      expect(reader.isDone).toBe(false);
      expect(reader.read(piece.subarray(16), 1)).toBeUndefined();
      expect([reader.isDone, reader.text]).toEqual([true, '']);
    }
  });
});

test.each([
  [[], undefined],
  [['Content-Length', '1'], undefined],
  [['Transfer-Encoding', 'chunked'], undefined],
  [['Transfer-Encoding', 'chunked', 'transfer-encoding', 'chunked'], 'two transfer codings'],
  [['Transfer-Encoding', 'chunked', 'Content-Length', '1'], 'a length beside a coding'],
  [['content-length', '', 'transfer-encoding', ''], 'a length beside a coding'],
])('%j: %j', (fields, fault) => {
  expect(framingFault(fields)).toBe(fault);
});

test.each([
  ['GET', 200, false],
  ['HEAD', 200, true],
  ['GET', 204, true],
  ['POST', 204, true],
  ['GET', 304, true],
  ['GET', 205, false],
  ['GET', 203, false],
  ['GET', 303, false],
  [undefined, 200, false],
])('%s, %i: without a body %s, and then nothing follows', (method, status, isWithout) => {
  expect(isBodiless(method, status)).toBe(isWithout);
  expect(maySucceed(method === 'HEAD', status)).toBe(!isWithout);
});
