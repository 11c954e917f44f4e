import { describe, expect, it } from 'vitest';
import { expectRejection, request, streamed, useAttackStage } from '../../harness/attack-stage.ts';
import { exchangeRaw } from '../../harness/raw-client.ts';

const stage = useAttackStage({ config: { limits: { requestBody: '100KiB' } } });
const kib = (count: number, letter = 'x') => letter.repeat(count * 1024);
const json = 'Content-Type: application/json';

describe('H18: requests that are too large', () => {
  it.each([
    ['fields of 70 KiB', request('GET /stores', [`X-Big: ${kib(70)}`]), 431, 'fields-too-large'],
    [
      'many small fields of 70 KiB',
      request('GET /stores', Array(7000).fill('X-A: 12345')),
      431,
      'fields-too-large',
    ],
    ['257 fields', request('GET /stores', Array(256).fill('X-A: b')), 431, 'fields-too-large'],
    ['5,000 fields', request('GET /stores', Array(5_000).fill('X-A: b')), 431, 'fields-too-large'],
    ['a field name of 70 KiB', request('GET /stores', [`${kib(70)}: x`]), 431, 'fields-too-large'],
    ['a target of 70 KiB', request(`GET /${kib(70)}`), 431, 'fields-too-large'],
    ['a path of 9 KiB', request(`GET /stores/${kib(9)}`), 414, 'target-too-long'],
    ['a path of 65 segments', request(`GET ${'/x'.repeat(65)}`), 400, 'bad-request-target'],
    ['a token of 17 KiB', request('GET /orders', [`Authorization: Bearer ${kib(17)}.a.b`]), 401, '001'],
    [
      'a body that says it is',
      request('POST /stores', [json, 'Content-Length: 102401']),
      413,
      'payload-too-large',
    ],
    [
      'a body that says it is huge',
      request('POST /stores', [json, 'Content-Length: 9007199254740993']),
      413,
      'payload-too-large',
    ],
    [
      'a protected one without a token',
      request('POST /returns', [json, 'Content-Length: 102400'], kib(100)),
      401,
      '002',
    ],
  ] as const)('%s', async (_, bytes, status, code) => {
    await stage.refuses(bytes, status, code);
  });

  /** H6: Node used to ignore the fields after the thousandth, framing fields too. CVE-2026-58044. */
  it('431 for more than a thousand fields, the last one a Content-Length', async () => {
    const fields = [...Array(1001).fill('a:b'), 'Content-Length: 37'];
    await stage.refuses(
      request('GET /stores', fields, 'GET /smuggled HTTP/1.1\r\nHost: s\r\n\r\n\r\n'),
      431,
      'fields-too-large',
    );
    expect(stage.upstream.bytes()).not.toContain('smuggled');
  });

  it('413 for a chunked body of 128 KiB', async () => {
    const chunk = `${(64 * 1024).toString(16)}\r\n${kib(64)}\r\n`;
    const fields = [json, 'Transfer-Encoding: chunked'];
    const bytes = request(`POST ${streamed}`, fields, `${chunk}${chunk}0\r\n\r\n`);
    expectRejection(await exchangeRaw(stage.port, bytes), 413, 'payload-too-large');
  });

  it.each([
    ['fields of 60 KiB', request('GET /stores', [`X-Big: ${kib(60)}`])],
    ['a cookie of 8 KiB', request('GET /stores', [`Cookie: a=${kib(8)}`])],
    ['a path of 8000 octets', request(`GET /stores/${'x'.repeat(7992)}`)],
    ['a query of 30 KiB', request(`GET /stores?${kib(30)}`)],
    ['256 fields', request('GET /stores', Array(255).fill('X-A: b'))],
    ['a body of 100 KiB', request('POST /stores', [json, 'Content-Length: 102400'], kib(100))],
  ])('%s passes', async (_, bytes) => {
    expect((await stage.passes(bytes)).response.status).toBe(200);
  });
});
