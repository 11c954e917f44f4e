import { describe, expect, it } from 'vitest';
import { expectRejection, request, streamed, useAttackStage } from '../../harness/attack-stage.ts';

const stage = useAttackStage();
const smuggled = 'GET /smuggled HTTP/1.1\r\nHost: s\r\n\r\n';
const length = (value: string) => `Content-Length: ${value}`;
const coding = (value: string) => `Transfer-Encoding: ${value}`;

/** Refused by shopward's own rules; the parser refuses all others. */
const codes: Readonly<Record<string, readonly [number, string]>> = {
  [coding('xchunked')]: [501, 'transfer-encoding-unsupported'],
  [coding('"chunked"')]: [501, 'transfer-encoding-unsupported'],
  [coding('chunked;q=1')]: [501, 'transfer-encoding-unsupported'],
  [coding('chunked, identity')]: [400, 'bad-request-fields'],
  [[coding('chunked'), coding('chunked')].join()]: [400, 'bad-request-fields'],
  [[coding('chunked'), coding('identity')].join()]: [400, 'bad-request-fields'],
  [[length('4'), coding('chunked')].join()]: [400, 'bad-request-fields'],
};

/** H12: Node's parser refuses these by default. What follows them must not be read as a request. */
describe('H12: framing', () => {
  it.each([
    ...[
      [length('4'), coding('chunked')],
      [coding('chunked'), length('4')],
      [coding('xchunked')],
      [coding('chunked, identity')],
    ],
    ...[
      [coding('chunked'), coding('chunked')],
      [coding('chunked'), coding('identity')],
      ['Transfer-Encoding : chunked'],
    ],
    ...[
      [coding('\vchunked')],
      [coding('chunked\v')],
      [coding('"chunked"')],
      [coding('chunked;q=1')],
      [' Transfer-Encoding: chunked'],
    ],
    ...[
      [length('+4')],
      [length('-4')],
      [length('1, 1')],
      [length('4'), length('4')],
      [length('4'), length('5')],
      [length('0x4')],
    ],
    ...[
      [length('4 4')],
      [length('99999999999999999999999')],
      [length('')],
      [length('4.0')],
      [length('1e1')],
      ['Content-Length : 4'],
    ],
    ...[
      ['X: a\nContent-Length: 4'],
      ['X: a\rContent-Length: 4'],
      ['X: a\0b'],
      ['X: a\r\n b'],
      ['X\r\n: a'],
      [': a'],
      ['X'],
    ],
  ])('400 or 501 for %j, and the connection ends', async (...fields) => {
    const before = stage.upstream.bytes();
    const connection = await stage.send(
      request('POST /stores', ['Content-Type: text/plain', ...fields], `0\r\n\r\n${smuggled}`),
    );
    const response = await connection.readResponse();
    expectRejection(response, ...(codes[fields.join()] ?? [400, 'bad-request']));
    expect((await connection.readAll()).toString()).toBe('');
    connection.close();
    expect(stage.upstream.bytes()).toBe(before);
  });

  it.each([
    ...[
      '0x5\r\nhello',
      '5 \r\nhello',
      'g\r\n',
      '-5\r\nhello',
      '5\nhello',
      '5\r\nhelloX',
      '5\r\nhello\n',
      'fffffffffffffffff\r\n',
    ],
    ...[
      '5;a\nb\r\nhello',
      '\r\n5\r\nhello',
      '+5\r\nhello',
      '5\r\nhello\r\n0\r\n X: y',
      '5\r\nhello\r\n0\r\nX\r\n',
    ],
  ])('400 for the chunk %j, and the connection ends', async (chunk) => {
    const fields = ['Content-Type: text/plain', coding('chunked')];
    const connection = await stage.send(
      request(`POST ${streamed}`, fields, `${chunk}\r\n0\r\n\r\n${smuggled}`),
    );
    expectRejection(await connection.readResponse(), 400, 'bad-request');
    expect((await connection.readAll()).toString()).toBe('');
    connection.close();
    expect(stage.upstream.bytes()).not.toContain('smuggled');
  });
});
