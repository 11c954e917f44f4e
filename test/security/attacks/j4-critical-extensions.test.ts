import { it } from 'vitest';
import { encode, signSegments } from '../../unit/access/signing.ts';
import { request, useAttackStage } from '../../harness/attack-stage.ts';

const stage = useAttackStage();
const withToken = (token: string) => request('GET /orders', [`Authorization: Bearer ${token}`]);

/** J4: an unknown critical extension makes a token invalid (RFC 7515 section 4.1.11), even if the right key signed it. */
it.each([
  ...[
    { crit: ['x'], x: 1 },
    { crit: ['b64'], b64: false },
    { b64: false },
    { b64: true, crit: ['b64'] },
    { crit: [] },
  ],
  ...[
    { crit: 'exp' },
    { crit: null },
    { crit: ['exp'], exp: 1 },
    { crit: ['alg'] },
    { crit: [1] },
    { zip: 'DEF', crit: ['zip'] },
  ],
])('J4: 401 for the header members %j', async (header) => {
  await stage.refuses(withToken(stage.shopward.issueToken({}, header)), 401, '001');
});

it.each([
  '[]',
  'null',
  '1',
  '"RS256"',
  '',
  '{',
  '{"alg":"RS256"',
  '\ufeff{"alg":"RS256"}',
  '{"alg":"RS256"}x',
  '{"alg":"\xff"}',
])('J4: 401 for the header %j', async (header) => {
  const [, payload = ''] = stage.shopward.issueToken().split('.');
  await stage.refuses(withToken(signSegments(stage.shopward.signer, encode(header), payload)), 401, '001');
});

it.each(['[]', 'null', '1', '""', '', '{', 'foo', '{"sub":"DE--21"', '{"sub":"DE--21"} x', '\ufeff{}', '{}'])(
  'J4: 401 for the payload %j',
  async (payload) => {
    const [header = ''] = stage.shopward.issueToken().split('.');
    await stage.refuses(withToken(signSegments(stage.shopward.signer, header, encode(payload))), 401, '001');
  },
);
