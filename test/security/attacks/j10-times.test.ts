import { describe, expect, it } from 'vitest';
import { encode, signSegments } from '../../unit/access/signing.ts';
import { invalidTokenChallenge, request, useAttackStage } from '../../harness/attack-stage.ts';

const stage = useAttackStage();
const withToken = (token: string) => request('GET /orders', [`Authorization: Bearer ${token}`]);
const now = () => Math.floor(Date.now() / 1000);

/** J10: the clock tolerance is 5 s and the greatest age 8 h. The cases are far from both, so that a slow machine changes nothing. */
describe('J10: times', () => {
  it.each<[string, () => object]>([
    ['expired', () => ({ exp: now() - 10 })],
    ['without exp', () => ({ exp: undefined })],
    ['without iat', () => ({ iat: undefined })],
    ['not yet valid', () => ({ nbf: now() + 600 })],
    ['issued in the future', () => ({ iat: now() + 600 })],
    ['issued in 2286', () => ({ iat: 9_999_999_999, exp: 99_999_999_999 })],
    ['older than eight hours', () => ({ iat: now() - 28_900, exp: now() + 3600 })],
    ['exp as text', () => ({ exp: `${now() + 60}` })],
    ['exp as null', () => ({ exp: null })],
    ['exp as a list', () => ({ exp: [now() + 60] })],
    ['exp as true', () => ({ exp: true })],
    ['exp before the epoch', () => ({ exp: -1 })],
    ['nbf as text', () => ({ nbf: '0' })],
    ['iat as text', () => ({ iat: `${now()}` })],
  ])('401 for a token: %s', async (_, claims) => {
    const response = await stage.refuses(withToken(stage.shopward.issueToken(claims())), 401, '001');
    expect(response.field('www-authenticate')).toBe(invalidTokenChallenge);
  });

  it.each(['1e999', '-1e999', '1e400', 'NaN', 'Infinity'])('401 for exp %s in the JSON text', async (exp) => {
    const [header = ''] = stage.shopward.issueToken().split('.');
    const payload = encode(`{"sub":"DE--21","iat":${now()},"exp":${exp}}`);
    await stage.refuses(withToken(signSegments(stage.shopward.signer, header, payload)), 401, '001');
  });

  it('fractions of seconds, as this shop writes them, are accepted', async () => {
    const claims = { iat: now() - 1.25, nbf: now() - 1.25, exp: now() + 60.000001 };
    await stage.passes(withToken(stage.shopward.issueToken(claims)));
  });
});
