import { describe, expect, it } from 'vitest';
import { encode, signSegments } from '../../unit/access/signing.ts';
import { invalidTokenChallenge, request, useAttackStage } from '../../harness/attack-stage.ts';

const stage = useAttackStage();
const sign = (claims: object, header: object = {}) => {
  const [, payload = ''] = stage.shopward.issueToken(claims).split('.');
  const kid = stage.shopward.signer.kid;
  return signSegments(stage.shopward.signer, encode({ alg: 'RS256', kid, ...header }), payload);
};
const withToken = (token: string) => request('GET /orders', [`Authorization: Bearer ${token}`]);
const events = { 'http://schemas.openid.net/event/backchannel-logout': {} };

/** Signed by the issuer's key, not expired, and still no access token (RFC 8725 section 3.11). */
describe('J17: kinds of token', () => {
  it.each<[string, object, object?]>([
    ['ID token of Keycloak', { typ: 'ID' }],
    ['ID token in lower case', { typ: 'id' }],
    ['ID token of Cognito', { token_use: 'id' }],
    ['ID token by its claims', { nonce: 'n', at_hash: 'h', scope: undefined, scopes: undefined }],
    ['refresh token of Keycloak', { typ: 'Refresh' }],
    ['offline token of Keycloak', { typ: 'Offline' }],
    ['logout token by its claim', { typ: 'Logout' }],
    ['logout token by its events', { events }],
    ['a type that is a list', { typ: ['Bearer'] }],
    ['a type that is a number', { token_use: 1 }],
    ['logout+jwt', {}, { typ: 'logout+jwt' }],
    ['secevent+jwt', {}, { typ: 'secevent+jwt' }],
    ['application/secevent+jwt', {}, { typ: 'application/secevent+jwt' }],
    ['dpop+jwt', {}, { typ: 'dpop+jwt' }],
    ['oauth-authz-req+jwt', {}, { typ: 'oauth-authz-req+jwt' }],
    ['client-authentication+jwt', {}, { typ: 'client-authentication+jwt' }],
    ['token-introspection+jwt', {}, { typ: 'token-introspection+jwt' }],
    ['an unknown type', {}, { typ: 'x' }],
    ['an empty type', {}, { typ: '' }],
    ['a type that is null', {}, { typ: null }],
    ['a list of types', {}, { typ: ['JWT'] }],
    ['space in the type', {}, { typ: 'JWT ' }],
    ['two prefixes', {}, { typ: 'application/application/jwt' }],
    ['a long K in the type', {}, { typ: 'at+\u212awt' }],
    ['bound to a DPoP key', { cnf: { jkt: 'x'.repeat(43) } }],
    ['bound to a certificate', { cnf: { 'x5t#S256': 'x' } }],
    ['bound by an empty cnf', { cnf: {} }],
    ['cnf as text', { cnf: 'x' }],
    ['cnf as false', { cnf: false }],
  ])('401 for a token: %s', async (_, claims, header) => {
    const response = await stage.refuses(withToken(sign(claims, header)), 401, '001');
    expect(response.field('www-authenticate')).toBe(invalidTokenChallenge);
  });

  it.each<[string, object, object?]>([
    ['no type', {}],
    ['JWT', {}, { typ: 'JWT' }],
    ['jwt', {}, { typ: 'jwt' }],
    ['at+jwt', {}, { typ: 'at+jwt' }],
    ['application/at+jwt', {}, { typ: 'Application/AT+JWT' }],
    ['Bearer, as Keycloak says', { typ: 'Bearer' }],
    ['access, as Cognito says', { token_use: 'access' }],
    ['a nonce alone, as Entra repeats it', { nonce: 'n' }],
  ])('an access token passes: %s', async (_, claims, header) => {
    await stage.passes(withToken(sign(claims, header)));
  });
});
