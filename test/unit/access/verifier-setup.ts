import { TokenVerifier, type TokenVerifierOptions } from '../../../src/access/token-verifier.ts';
import { makeSigner } from './signing.ts';
import { StubKeySource, hmacKey, verificationKey } from './stub-key-source.ts';

export const nowSeconds = 1_700_000_000;
export const claims = { sub: 'DE--21', exp: nowSeconds + 100, iat: nowSeconds, scopes: ['customer'] };
export const identity = {
  subject: 'DE--21',
  claimedSubject: 'DE--21',
  scopes: ['customer'],
  expiresAtMs: (nowSeconds + 100) * 1000,
};
export const secret = '0123456789abcdef0123456789abcdef';

export const rsa = makeSigner('RS256');
export const otherRsa = makeSigner('RS256');
const pss = makeSigner('PS256', 'pss');
export const ec = makeSigner('ES256', 'ec');
export const ed = makeSigner('EdDSA', 'ed');
export const all = [
  verificationKey(rsa),
  verificationKey(pss),
  verificationKey(ec),
  verificationKey(ed),
  hmacKey(secret),
];
const allAlgorithms = ['RS256', 'PS256', 'ES256', 'EdDSA', 'HS256'];

type Options = Partial<TokenVerifierOptions & { readonly keySource: StubKeySource }>;

/** A verifier whose keys and clock a test changes. */
export function createVerifier(options: Options = {}) {
  const keySource = options.keySource ?? new StubKeySource(all);
  const clock = { nowMs: nowSeconds * 1000 };
  const verifier = new TokenVerifier({
    algorithms: allAlgorithms,
    clockToleranceMs: 0,
    subject: 'sub',
    now: () => clock.nowMs,
    ...options,
    keySource,
  });
  return { verifier, keySource, clock };
}

export function invalid(reason: string) {
  return { rejection: 'access-token-invalid', reason };
}
