import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type JwksServer, startJwksServer } from '../../unit/access/jwks-server.ts';
import { makeSigner, makeToken, publicJwk } from '../../unit/access/signing.ts';
import { request, useAttackStage } from '../../harness/attack-stage.ts';

const stage = useAttackStage();
const attacker = makeSigner('RS256', 'attacker');
let canary: JwksServer;
beforeAll(async () => {
  canary = await startJwksServer(attacker);
});
afterAll(() => canary.close());

function attackersToken(header: object): string {
  const now = Math.floor(Date.now() / 1000);
  return makeToken(attacker, { sub: 'DE--21', iat: now, exp: now + 60 }, header);
}

/** J3: a token that contains the key to verify it with, or names a place to get it from. */
describe('J3: the header of a token chooses no key', () => {
  it.each<[string, () => unknown]>([
    ['jwk', () => publicJwk(attacker)],
    ['jku', () => canary.url],
    ['x5u', () => canary.url],
    ['x5c', () => [attacker.publicKey.export({ type: 'spki', format: 'der' }).toString('base64')]],
    ['x5t', () => 'AAAAAAAAAAAAAAAAAAAAAAAAAAA'],
    ['x5t#S256', () => 'A'.repeat(43)],
    ['url', () => canary.url],
    ['iss', () => canary.url],
  ])('401 for a key in the header %s, and no request to its server', async (name, value) => {
    const token = attackersToken({ [name]: value() });
    await stage.refuses(request('GET /orders', [`Authorization: Bearer ${token}`]), 401, '001');
    expect(canary.hits).toBe(0);
  });

  const kids: readonly unknown[] = [
    ...[
      '../../etc/passwd',
      '/dev/null',
      "' OR 1=1 --",
      'a\0',
      '',
      '__proto__',
      'constructor',
      'x'.repeat(5000),
    ],
    ...['\uD800', {}, [], null, 0, true, { toString: 'x' }, 'public.pem', 'http://127.0.0.1/'],
  ];
  it.each(kids.map((kid) => ({ kid })))('401 for %j', async (header) => {
    const token = attackersToken(header);
    await stage.refuses(request('GET /orders', [`Authorization: Bearer ${token}`]), 401, '001');
  });
});
