import { it } from 'vitest';
import { encode } from '../../unit/access/signing.ts';
import { request, useAttackStage } from '../../harness/attack-stage.ts';

const stage = useAttackStage();

/** J5: an encrypted token is refused before any decryption (PBES2 and compression bombs). */
it.each([
  { alg: 'dir', enc: 'A256GCM' },
  { alg: 'PBES2-HS256+A128KW', enc: 'A128GCM', p2c: 2_147_483_647, p2s: 'AAAA' },
  { alg: 'RSA-OAEP', enc: 'A256GCM', zip: 'DEF' },
  { alg: 'RS256', cty: 'JWT' },
])('J5: 401 for %j in four, five or six parts', async (header) => {
  const [, payload = '', signature = ''] = stage.shopward.issueToken().split('.');
  const five = [encode(header), payload, signature, 'AAAAAAAAAAAAAAAA', 'AAAA'];
  for (const parts of [
    five,
    [...five, 'AAAA'],
    five.slice(0, 4),
    [...five.slice(0, 1), '', ...five.slice(2)],
  ]) {
    await stage.refuses(request('GET /orders', [`Authorization: Bearer ${parts.join('.')}`]), 401, '001');
  }
});

it('J5: 401 for a token within a token that has the signature of the inner one', async () => {
  const inner = stage.shopward.issueToken();
  const outer = `${encode({ alg: 'RS256', cty: 'JWT' })}.${encode(inner)}.${inner.split('.')[2]}`;
  await stage.refuses(request('GET /orders', [`Authorization: Bearer ${outer}`]), 401, '001');
});
