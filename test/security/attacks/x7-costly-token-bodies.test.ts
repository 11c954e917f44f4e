import { gzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { request, useAttackStage } from '../../harness/attack-stage.ts';

const stage = useAttackStage();
const refusal = [400, 'token-request-not-plain'] as const;

/** X7: a few KiB of gzip can expand to millions of fields, so a token request with a coding is refused undecoded. */
it.each([
  ['NULs, which may be UTF-16', 'a&\0'.repeat(1_300_000)],
  ['fields', 'a&'.repeat(2_000_000)],
  ['names of JSON', '"a":'.repeat(1_000_000)],
])('X7: 415 for a token request in gzip, with millions of %s', async (_, text) => {
  const body = gzipSync(text).toString('latin1');
  const fields = [
    'Content-Type: application/json',
    'Content-Encoding: gzip',
    `Content-Length: ${body.length}`,
  ];
  await stage.refuses(request('POST /refresh-tokens', fields, body), 415, 'token-request-type');
});

it('X7: 400 for a token request of 65,537 octets, 200 for one of 60,000', async () => {
  const body = `"${'x'.repeat(65_534)}"x`;
  const fields = ['Content-Type: application/json', `Content-Length: ${body.length}`];
  await stage.refuses(request('POST /refresh-tokens', fields, body), ...refusal);
  const short = `"${'x'.repeat(59_998)}"`;
  const passed = await stage.passes(
    request('POST /refresh-tokens', ['Content-Type: application/json', 'Content-Length: 60000'], short),
  );
  expect(passed.response.status).toBe(200);
});
