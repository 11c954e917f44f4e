import { createHmac } from 'node:crypto';
import { expect, it } from 'vitest';
import { encode, makeSigner, makeToken, publicJwk, publicPem } from '../../unit/access/signing.ts';
import { request, useAttackStage } from '../../harness/attack-stage.ts';

const stage = useAttackStage();
const withToken = (token: string) => request('GET /orders', [`Authorization: Bearer ${token}`]);

/** J2: the public key, which everyone has, must not be used as a shared secret. */
it.each(['HS256', 'HS384', 'HS512', 'RS256'])(
  'J2: 401 for an HMAC with the public key, with alg %s',
  async (alg) => {
    const { signer } = stage.shopward;
    const pem = publicPem(signer);
    const jwk = publicJwk(signer);
    const secrets = [
      ...[pem, pem.trim(), pem.replaceAll('\n', '\r\n'), JSON.stringify(jwk), String(jwk.n), ''],
      ...[signer.publicKey.export({ type: 'spki', format: 'der' }), Buffer.from(String(jwk.n), 'base64url')],
      signer.publicKey.export({ type: 'pkcs1', format: 'pem' }),
    ];
    const [, payload] = stage.shopward.issueToken().split('.');
    for (const secret of secrets) {
      const input = `${encode({ typ: 'JWT', alg })}.${payload}`;
      const hash = alg === 'RS256' ? 'sha256' : `sha${alg.slice(2)}`;
      const signature = createHmac(hash, secret).update(input).digest('base64url');
      await stage.refuses(withToken(`${input}.${signature}`), 401, '001');
    }
  },
);

it.each(['PS256', 'ES256', 'EdDSA'])('J2: 401 for %s, which is not configured', async (alg) => {
  const now = Math.floor(Date.now() / 1000);
  const claims = { sub: 'DE--21', iat: now, exp: now + 60 };
  await stage.refuses(withToken(makeToken(makeSigner(alg), claims)), 401, '001');
  // The right key with an algorithm that is not configured.
  const { privateKey, publicKey } = stage.shopward.signer;
  if (alg === 'PS256') {
    await stage.refuses(withToken(makeToken({ alg, privateKey, publicKey }, claims)), 401, '001');
  }
});

it('J2: 401 for a token with the same header that another key has signed', async () => {
  const stranger = makeSigner('RS256');
  const [header, payload] = stage.shopward.issueToken().split('.');
  const token = makeToken(stranger, JSON.parse(Buffer.from(payload ?? '', 'base64url').toString()));
  expect(token.split('.')[0]).toBe(header);
  await stage.refuses(withToken(token), 401, '001');
});
