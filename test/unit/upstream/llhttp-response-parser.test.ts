import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { longestRead } from '../../../src/upstream/llhttp.ts';
import { ResponseParser } from '../../../src/upstream/response-parser.ts';
import { brokenAnswers, ok } from './broken-answers.ts';

/** What the parser read from a response, however it was cut. */
interface Heard {
  informational: number[];
  head: { status: number; reason: string; fields: readonly string[] } | undefined;
  body: string;
  end: 'whole' | 'whole, last' | 'broken' | 'open';
}

interface Response {
  readonly bytes: string;
  readonly isHeadRequest?: boolean;
  /** The connection ends after the response. */
  readonly ends?: boolean;
}

/** As in a connection: the bytes are at the start of a longer buffer, which is reused. */
const bit = Buffer.alloc(longestRead);

function hear({ bytes, isHeadRequest = false, ends = false }: Response, cuts: readonly number[] = []): Heard {
  const all = Buffer.from(bytes, 'latin1');
  const parser = new ResponseParser(1000);
  const heard: Heard = { informational: [], head: undefined, body: '', end: 'open' };
  const isOpen = () => heard.end === 'open';
  const take = (isLast: boolean) => {
    heard.informational.push(...parser.informational.map(({ status }) => status));
    if (parser.head !== undefined) heard.head = parser.head;
    heard.body += bit.toString('latin1', parser.bodyStart, parser.bodyEnd);
    if (parser.fault !== undefined) heard.end = 'broken';
    // Surplus bytes of a later read are handled by the connection.
    else if (parser.isComplete) heard.end = parser.isReusable && isLast ? 'whole' : 'whole, last';
  };
  parser.begin(isHeadRequest);
  const cutsAt = [0, ...cuts.map((cut) => cut % (all.length + 1)).sort((a, b) => a - b), all.length];
  for (let i = 1; i < cutsAt.length && isOpen(); i++) {
    const part = all.subarray(cutsAt[i - 1], cutsAt[i]);
    if (part.length === 0) continue;
    bit.fill('x');
    part.copy(bit);
    parser.read(bit, part.length);
    take(cutsAt[i] === all.length);
  }
  if (ends && isOpen()) {
    parser.finish();
    take(true);
  }
  parser.free();
  return heard;
}

const whole = (status: number, reason: string, fields: string[], body = ''): Heard => ({
  informational: [],
  head: { status, reason, fields },
  body,
  end: 'whole',
});

/** The connection is not reused: surplus bytes may follow a response without a body. */
const last = (heard: Heard): Heard => ({ ...heard, end: 'whole, last' });

const [none, a] = ['Content-Length: 0\r\n\r\n', 'Content-Length: 1\r\n\r\na'];
const chunked = 'Transfer-Encoding: chunked\r\n\r\n';
const [length0, length1] = ['0', '1'].map((length) => ['Content-Length', length]) as [string[], string[]];

const responses: readonly (readonly [string, Response, Heard])[] = [
  [
    'a length',
    { bytes: `${ok}Content-Length: 3\r\n\r\nabc` },
    whole(200, 'OK', ['Content-Length', '3'], 'abc'),
  ],
  ['no body', { bytes: `${ok}${none}` }, whole(200, 'OK', length0)],
  [
    'chunks with extensions and trailers',
    { bytes: `${ok}${chunked}3;a=b\r\nabc\r\n2\r\nde\r\n0\r\nX-Sum: 1\r\n\r\n` },
    whole(200, 'OK', ['Transfer-Encoding', 'chunked'], 'abcde'),
  ],
  [
    'a request of HEAD',
    { bytes: `${ok}Content-Length: 3\r\n\r\n`, isHeadRequest: true },
    last(whole(200, 'OK', ['Content-Length', '3'])),
  ],
  ['204', { bytes: 'HTTP/1.1 204 No Content\r\n\r\n' }, last(whole(204, 'No Content', []))],
  [
    '304',
    { bytes: 'HTTP/1.1 304 Not Modified\r\nETag: "1"\r\n\r\n' },
    last(whole(304, 'Not Modified', ['ETag', '"1"'])),
  ],
  [
    'interim responses',
    { bytes: `HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Hints\r\nLink: </a>\r\n\r\n${ok}${a}` },
    { ...whole(200, 'OK', length1, 'a'), informational: [102, 103] },
  ],
  [
    'the end of the connection as the end of the body',
    { bytes: `${ok}A: b\r\n\r\nabc`, ends: true },
    last(whole(200, 'OK', ['A', 'b'], 'abc')),
  ],
  [
    'Connection: close',
    { bytes: `${ok}Connection: close\r\n${a}` },
    last(whole(200, 'OK', ['Connection', 'close', ...length1], 'a')),
  ],
  ['HTTP/1.0', { bytes: `HTTP/1.0 200 OK\r\n${a}` }, last(whole(200, 'OK', length1, 'a'))],
  [
    'a reason and values in latin-1, an empty value, repeated fields',
    { bytes: `HTTP/1.1 200 D\xe9j\xe0\r\nA:\r\na: \xfc\r\nA: 2\r\n${none}` },
    whole(200, 'D\xe9j\xe0', ['A', '', 'a', '\xfc', 'A', '2', ...length0]),
  ],
  [
    'space around values',
    { bytes: `${ok}A: \tb c\xa0\t \r\nB:  \r\nContent-Length: 0 \r\n\r\n` },
    whole(200, 'OK', ['A', 'b c\xa0', 'B', '', ...length0]),
  ],
  [
    'a length of an interim response',
    { bytes: `HTTP/1.1 103 Hints\r\nContent-Length: 5\r\n\r\n${ok}${a}` },
    { ...whole(200, 'OK', length1, 'a'), informational: [103] },
  ],
  ['204 without a body', { bytes: `HTTP/1.1 204 No\r\n${none}` }, last(whole(204, 'No', length0))],
  [
    '204 that announces a body',
    { bytes: 'HTTP/1.1 204 No\r\nContent-Length: 5\r\n\r\n' },
    last(whole(204, 'No', ['Content-Length', '5'])),
  ],
  [
    '304 that announces chunks',
    { bytes: `HTTP/1.1 304 Not\r\n${chunked}` },
    last(whole(304, 'Not', ['Transfer-Encoding', 'chunked'])),
  ],
  ['no reason', { bytes: `HTTP/1.1 200 \r\n${none}` }, whole(200, '', length0)],
  ['bytes after the end', { bytes: `${ok}${a}${ok}${a}` }, last(whole(200, 'OK', length1, 'a'))],
];

describe('a response that is cut anywhere is read like a whole one', () => {
  test.each(responses)('%s', (_, response, expected) => {
    expect(hear(response)).toEqual(expected);
    for (let cut = 1; cut < response.bytes.length; cut++) assert.deepEqual(hear(response, [cut]), expected);
    fc.assert(
      fc.property(fc.array(fc.nat(10_000), { maxLength: 20 }), (cuts) => {
        assert.deepEqual(hear(response, cuts), expected);
      }),
      { numRuns: 30 },
    );
  });
});

test.each<readonly [string, string]>([
  ...brokenAnswers,
  ['fields that are too long', `${ok}A: ${'b'.repeat(1000)}\r\n\r\n`],
  [
    'trailers that are too long',
    `${ok}Transfer-Encoding: chunked\r\n\r\n0\r\nA: ${'b'.repeat(1000)}\r\n\r\n`,
  ],
])('%s breaks the response', (_, bytes) => {
  expect(hear({ bytes }).end).toBe('broken');
  // Long ones repeat the same octets.
  const step = bytes.length > 1_100 ? 50 : 1;
  for (let cut = 1; cut < Math.min(bytes.length, 1_100); cut += step)
    assert.equal(hear({ bytes }, [cut]).end, 'broken');
});

test.each([
  ['in the head', `${ok}A: b\r\n`],
  ['in a body with a length', `${ok}Content-Length: 3\r\n\r\nab`],
  ['in a chunk', `${ok}Transfer-Encoding: chunked\r\n\r\n3\r\nab`],
  ['before the last chunk', `${ok}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n`],
  ['before anything', ''],
])('an end of the connection %s breaks the response', (_, bytes) => {
  expect(hear({ bytes, ends: true }).end).toBe('broken');
});

test.each([
  [1000, 'whole'],
  [1001, 'broken'],
])('a head of %i octets, including interim ones, is %s', (octets, end) => {
  const start = `HTTP/1.1 103 Hints\r\n\r\n${ok}Content-Length: 0\r\nA: `;
  const bytes = `${start}${'x'.repeat(octets - start.length - 4)}\r\n\r\n`;
  for (const cut of [1, 20, 500, octets - 1]) expect(hear({ bytes }, [cut]).end).toBe(end);
});

test('a parser reads several responses, also after the memory of WebAssembly has grown', () => {
  const parser = new ResponseParser(1000);
  const bit = Buffer.from(`${ok}Content-Length: 1\r\n\r\na`);
  const others: ResponseParser[] = [];
  for (let i = 0; i < 5; i++) {
    parser.begin(false);
    parser.read(bit, bit.length);
    expect([parser.head?.status, parser.bodyStart, parser.bodyEnd]).toEqual([
      ...[200, bit.length - 1, bit.length],
    ]);
    expect([parser.isComplete, parser.isReusable]).toEqual([true, true]);
    for (let k = 0; k < 5_000; k++) others.push(new ResponseParser(1000));
  }
  for (const other of others) other.free();
});
