import { describe, expect, it } from 'vitest';
import { makeToken } from './signing.ts';
import { createStubKeySource, verificationKey } from './stub-key-source.ts';
import {
  all,
  claims,
  createVerifier,
  ec,
  ed,
  identity,
  invalid,
  nowSeconds,
  otherRsa,
  rsa,
} from './verifier-setup.ts';

describe('memory', () => {
  it('answers a remembered token at once, without keys', async () => {
    const { verifier, keySource } = createVerifier();
    const token = makeToken(rsa, claims);
    expect(await verifier.verify(token)).toEqual(identity);
    expect(verifier.verify(token)).toEqual(identity);
    expect([keySource.asked, verifier.status()]).toEqual([1, { remembered: 1, verifying: 0 }]);
  });

  it('does not take an altered signature for the remembered token', async () => {
    const { verifier } = createVerifier();
    const token = makeToken(rsa, claims);
    await verifier.verify(token);
    const altered = `${token.slice(0, -2)}${token.at(-2) === 'A' ? 'B' : 'A'}${token.at(-1)}`;
    expect(await verifier.verify(altered)).toEqual(invalid('signature'));
    const otherClaims = makeToken(rsa, { ...claims, sub: 'x' }).split('.');
    const spliced = [otherClaims[0], otherClaims[1], token.split('.')[2]].join('.');
    expect(await verifier.verify(spliced)).toEqual(invalid('signature'));
  });

  it('refuses a remembered token the moment it expires, or the clock says that it is not yet valid', async () => {
    const { verifier, clock } = createVerifier({ clockToleranceMs: 5_000, maxTokenAgeMs: 60_000 });
    const token = makeToken(rsa, { ...claims, exp: nowSeconds + 50 });
    const aged = makeToken(rsa, { ...claims, exp: nowSeconds + 500 });
    await Promise.all([verifier.verify(token), verifier.verify(aged)]);
    clock.nowMs = (nowSeconds + 55) * 1000 - 1;
    expect(verifier.verify(token)).toHaveProperty('subject');
    clock.nowMs = (nowSeconds + 55) * 1000;
    expect(verifier.verify(token)).toEqual(invalid('expired'));
    clock.nowMs = (nowSeconds + 65) * 1000;
    expect(verifier.verify(aged)).toEqual(invalid('too-old'));
    clock.nowMs = (nowSeconds - 300) * 1000;
    expect(verifier.verify(token)).toEqual(invalid('issued-in-future'));
  });

  it('forgets all when keys change: a token of a removed key is refused', async () => {
    const { verifier, keySource } = createVerifier();
    const source = keySource;
    const token = makeToken(ec, claims);
    await verifier.verify(token);
    source.use([verificationKey(ed)]);
    expect(await verifier.verify(token)).toEqual(invalid('unknown-key'));
  });

  it('does not remember what was under verification when keys changed', async () => {
    const { verifier, keySource } = createVerifier();
    const token = makeToken(ec, claims);
    const early = verifier.verify(token);
    keySource.use([verificationKey(ed)]);
    const late = verifier.verify(token);
    expect(await early).toEqual(identity);
    expect(await late).toEqual(invalid('unknown-key'));
    expect(verifier.status()).toEqual({ remembered: 0, verifying: 0 });
    expect(await verifier.verify(token)).toEqual(invalid('unknown-key'));
  });

  it('forgets on request, and no longer listens once closed', async () => {
    const { verifier, keySource } = createVerifier();
    const token = makeToken(rsa, claims);
    await verifier.verify(token);
    verifier.forgetAll();
    expect(verifier.status().remembered).toBe(0);
    verifier.close();
    await verifier.verify(token);
    keySource.use(all);
    expect(verifier.status().remembered).toBe(1);
  });

  it('is bounded, and refusals take no place in it', async () => {
    const { verifier } = createVerifier({ maxRememberedTokens: 2 });
    const tokens = ['a', 'b', 'c'].map((sub) => makeToken(ed, { ...claims, sub }));
    for (const token of tokens) await verifier.verify(token);
    for (let i = 0; i < 20; i++) await verifier.verify(makeToken(ed, { ...claims, exp: i }));
    for (let i = 0; i < 20; i++) await verifier.verify(makeToken(otherRsa, { ...claims, exp: i }));
    expect(verifier.status().remembered).toBe(2);
    expect(verifier.verify(tokens[2] ?? '')).toHaveProperty('subject', 'c');
    expect(verifier.verify(tokens[0] ?? '')).toBeInstanceOf(Promise);
  });

  it('can be switched off', async () => {
    const { verifier, keySource } = createVerifier({ maxRememberedTokens: 0 });
    const token = makeToken(rsa, claims);
    await verifier.verify(token);
    expect(await verifier.verify(token)).toEqual(identity);
    expect(keySource.asked).toBe(2);
  });
});

describe('under load', () => {
  it('verifies a token once, however many requests carry it', async () => {
    const { verifier, keySource } = createVerifier();
    const token = makeToken(rsa, claims);
    const verdicts = await Promise.all(Array.from({ length: 100 }, () => verifier.verify(token)));
    expect(verdicts).toEqual(Array.from({ length: 100 }, () => identity));
    expect(keySource.asked).toBe(1);
  });

  it('refuses verifications beyond its limit, and still serves remembered tokens', async () => {
    const { verifier } = createVerifier({ maxVerifying: 10 });
    const known = makeToken(ed, claims);
    await verifier.verify(known);
    const bad = Array.from({ length: 50 }, (_, i) => makeToken(ed, { ...claims, exp: i }));
    const flood = bad.map((token) => verifier.verify(token));
    expect(verifier.verify(known)).toEqual(identity);
    const verdicts = await Promise.all(flood);
    expect(verdicts.slice(0, 10)).toEqual(Array.from({ length: 10 }, () => invalid('expired')));
    const overloaded = { rejection: 'overloaded', reason: 'verifications', retryAfterSeconds: 1 };
    expect(verdicts.slice(10)).toEqual(Array.from({ length: 40 }, () => overloaded));
    expect(verifier.status().verifying).toBe(0);
  });

  it('cannot verify without keys: 503, never 401', async () => {
    const { verifier, keySource } = createVerifier();
    keySource.useNothing();
    expect(await verifier.verify(makeToken(rsa, claims))).toEqual({
      rejection: 'keys-unavailable',
      reason: 'keys',
      retryAfterSeconds: 7,
    });
  });

  it('tries newer keys once where a token without kid fits none of those it knew', async () => {
    const keySource = createStubKeySource([verificationKey(otherRsa)]);
    const { verifier } = createVerifier({ keySource });
    const verdict = verifier.verify(makeToken(rsa, claims));
    keySource.use([verificationKey(otherRsa), verificationKey(rsa)]);
    expect(await verdict).toEqual(identity);
  });
});
