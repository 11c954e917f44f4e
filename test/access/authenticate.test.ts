import { describe, expect, it } from 'vitest';
import { createAuthenticate } from '../../src/access/authenticate.ts';
import { TokenVerifier } from '../../src/access/token-verifier.ts';
import { reject } from '../../src/http/rejection.ts';
import { accepted, sampleHead } from '../http/sample-request.ts';
import { makeSigner, makeToken } from './signing.ts';
import { createStubKeySource, verificationKey } from './stub-key-source.ts';

const ec = makeSigner('ES256', 'ec');
const claims = { sub: 'DE--21', exp: 2_000, scopes: ['customer', 'analyst'] };
const token = makeToken(ec, claims);

const sample = accepted(sampleHead());

function setUp() {
  const keySource = createStubKeySource([verificationKey(ec)]);
  const verifier = new TokenVerifier({
    algorithms: ['ES256'],
    keySource,
    clockToleranceMs: 0,
    subject: 'sub',
    now: () => 1_000_000,
  });
  const authenticate = createAuthenticate({
    verifier,
    resourceMetadataUrl: ({ scheme, host }) => `${scheme}://${host}/.well-known/oauth-protected-resource`,
  });
  const ask = (fields: string[], scopes: string[] = []) =>
    authenticate({ ...sample, fields, scheme: 'https', host: 'api.shop.example' }, { scopes });
  return { ask, keySource };
}

const metadata = 'resource_metadata="https://api.shop.example/.well-known/oauth-protected-resource"';

describe('authenticate', () => {
  it('gives the identity and the one value to forward, at once when the token is remembered', async () => {
    const { ask } = setUp();
    const expected = {
      identity: {
        ...{ subject: 'DE--21', claimedSubject: 'DE--21' },
        scopes: ['customer', 'analyst'],
        expiresAtMs: 2_000_000,
      },
    };
    const canonical = `Bearer ${token}`;
    expect(await ask(['Authorization', `bearer   ${token}`])).toMatchObject({
      ...expected,
      request: { fields: ['Authorization', canonical] },
    });
    expect(ask(['authorization', canonical], ['analyst', 'customer'])).toMatchObject({
      ...expected,
      request: { fields: ['authorization', canonical] },
    });
  });

  it.each<[string, string[], string[], object]>([
    [
      'no credentials',
      [],
      ['analyst'],
      {
        rejection: 'access-token-missing',
        reason: 'missing',
        challenge: `Bearer realm="Access to shop API", ${metadata}`,
      },
    ],
    [
      'bad credentials',
      ['Authorization', '3485h7'],
      [],
      {
        rejection: 'access-token-invalid',
        reason: 'scheme',
        challenge: `Bearer realm="Access to shop API", error="invalid_token", ${metadata}`,
      },
    ],
    [
      'credentials of another scheme: RFC 6750 section 3.1',
      ['Authorization', 'Basic dTpw'],
      [],
      {
        rejection: 'access-token-invalid',
        reason: 'other-scheme',
        challenge: `Bearer realm="Access to shop API", ${metadata}`,
      },
    ],
    [
      'a bad token',
      ['Authorization', `Bearer ${makeToken(ec, { ...claims, exp: 999 })}`],
      ['admin'],
      {
        rejection: 'access-token-invalid',
        reason: 'expired',
        challenge: `Bearer realm="Access to shop API", error="invalid_token", ${metadata}`,
      },
    ],
    [
      'one scope of two',
      ['Authorization', `Bearer ${token}`],
      ['analyst', 'admin'],
      {
        rejection: 'insufficient-scope',
        reason: 'scope',
        challenge: `Bearer realm="Access to shop API", error="insufficient_scope", scope="analyst admin", ${metadata}`,
        sender: expect.objectContaining({ subject: 'DE--21', clientId: undefined }),
      },
    ],
  ])('%s', async (_, fields, scopes, rejection) => {
    const { ask } = setUp();
    expect(await ask(fields, scopes)).toEqual(rejection);
    expect(await ask(fields, scopes)).toEqual(rejection);
  });

  it('names the shop and no metadata where nothing else was configured', () => {
    const authenticate = createAuthenticate({ verifier: { verify: () => reject('keys-unavailable') } });
    expect(authenticate(accepted(sampleHead()), { scopes: [] })).toHaveProperty(
      'challenge',
      'Bearer realm="Access to shop API"',
    );
  });

  it('sends no challenge where the fault is ours', async () => {
    const { ask, keySource } = setUp();
    keySource.useNothing();
    expect(await ask(['Authorization', `Bearer ${token}`])).toEqual({
      rejection: 'keys-unavailable',
      reason: 'keys',
      retryAfterSeconds: 7,
    });
  });
});
