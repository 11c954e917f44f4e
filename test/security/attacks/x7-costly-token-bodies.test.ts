import { gzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { request, useAttackStage } from '../../harness/attack-stage.ts';

const stage = useAttackStage();
const refusal = [400, 'token-request-not-plain'] as const;

/** X7: a few KiB that stand for millions of fields held the whole process for a second: nothing is unpacked. */
it.each([
  ['NULs, which may be UTF-16', 'a&\0'.repeat(1_300_000)],
  ['fields', 'a&'.repeat(2_000_000)],
  ['names of JSON', '"a":'.repeat(1_000_000)],
])('X7: %s are not looked for a token after a coding', async (_, text) => {
  const body = gzipSync(text).toString('latin1');
  const fields = [
    'Content-Type: application/json',
    'Content-Encoding: gzip',
    `Content-Length: ${body.length}`,
  ];
  await stage.refuses(request('POST /refresh-tokens', fields, body), 415, 'token-request-type');
});

it('X7: nor in more than anybody sends', async () => {
  const body = `"${'x'.repeat(65_534)}"x`;
  const fields = ['Content-Type: application/json', `Content-Length: ${body.length}`];
  await stage.refuses(request('POST /refresh-tokens', fields, body), ...refusal);
  const short = `"${'x'.repeat(59_998)}"`;
  const passed = await stage.passes(
    request('POST /refresh-tokens', ['Content-Type: application/json', 'Content-Length: 60000'], short),
  );
  expect(passed.response.status).toBe(200);
});
