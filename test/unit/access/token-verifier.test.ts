import { describe, expect, it } from 'vitest';
import type { KeyLookup, Keys, TokenHeader } from '../../../src/access/key-source.ts';
import { makeSigner, makeToken } from './signing.ts';
import { StubKeySource, verificationKey } from './stub-key-source.ts';
import { claims, createVerifier, ec, ed, identity, invalid, otherRsa, rsa } from './verifier-setup.ts';

describe('a signature that no key fits', () => {
  const own = makeSigner('RS256', 'k1');
  const bad = makeToken({ ...otherRsa, kid: 'k1' }, claims);
  const nameless = makeToken(otherRsa, claims);
  const ask = async (token: string, newer: object = { keys: [] }) => {
    let renewals = 0;
    class RenewedKeys extends StubKeySource {
      override keysFor(header: TokenHeader, tried?: Keys) {
        if (tried === undefined) return super.keysFor(header);
        renewals += 1;
        return newer as KeyLookup;
      }
    }
    const keySource = new RenewedKeys([verificationKey(own), verificationKey(ec)]);
    const { verifier } = createVerifier({ keySource });
    return [await verifier.verify(token), renewals];
  };

  it('is refused if the token names its key; otherwise the source is asked once more, and decides', async () => {
    expect(await ask(bad)).toEqual([invalid('signature'), 0]);
    expect(await ask(nameless)).toEqual([invalid('signature'), 1]);
    expect(await ask(nameless, { keys: [verificationKey(otherRsa)] })).toEqual([identity, 1]);
    const away = { rejection: 'keys-unavailable', reason: 'keys', retryAfterSeconds: 3 };
    expect(await ask(nameless, { retryAfterSeconds: 3 })).toEqual([away, 1]);
  });

  it('if the material of the key is unusable: throws', async () => {
    const broken = { ...verificationKey(ec), material: {} as never };
    const { verifier } = createVerifier({ keySource: new StubKeySource([broken]) });
    await expect(verifier.verify(makeToken(ec, claims))).rejects.toThrow(TypeError);
  });
});

it('remembers no token with maxRememberedTokens: 0, and none after close', async () => {
  const { verifier } = createVerifier({ maxRememberedTokens: 0 });
  expect(await verifier.verify(makeToken(ec, claims))).toEqual(identity);
  verifier.forgetAll();
  expect(verifier.status()).toEqual({ remembered: 0, verifying: 0 });
  const remembering = createVerifier().verifier;
  await remembering.verify(makeToken(ec, claims));
  expect(remembering.status().remembered).toBe(1);
  remembering.close();
  expect(remembering.status().remembered).toBe(0);
});

describe('the memory of verified tokens', () => {
  it('excludes a token that was being verified when the keys changed', async () => {
    const { verifier, keySource } = createVerifier();
    const token = makeToken(ec, claims);
    const early = verifier.verify(token);
    keySource.loaded([verificationKey(ed)]);
    const late = verifier.verify(token);
    expect(await early).toEqual(identity);
    expect(await late).toEqual(invalid('unknown-key'));
    expect(verifier.status()).toEqual({ remembered: 0, verifying: 0 });
    expect(await verifier.verify(token)).toEqual(invalid('unknown-key'));
  });

  it('is bounded, and contains no refusals', async () => {
    const { verifier } = createVerifier({ maxRememberedTokens: 2 });
    const tokens = ['a', 'b', 'c'].map((sub) => makeToken(ed, { ...claims, sub }));
    for (const token of tokens) await verifier.verify(token);
    for (let i = 0; i < 20; i++) await verifier.verify(makeToken(ed, { ...claims, exp: i }));
    for (let i = 0; i < 20; i++) await verifier.verify(makeToken(otherRsa, { ...claims, exp: i }));
    expect(verifier.status().remembered).toBe(2);
    expect(verifier.verify(tokens[2] ?? '')).toHaveProperty('subject', 'c');
    expect(verifier.verify(tokens[0] ?? '')).toBeInstanceOf(Promise);
  });

  it('100 requests with one token: one verification', async () => {
    const { verifier, keySource } = createVerifier();
    const token = makeToken(rsa, claims);
    const verdicts = await Promise.all(Array.from({ length: 100 }, () => verifier.verify(token)));
    expect(verdicts).toEqual(Array.from({ length: 100 }, () => identity));
    expect(keySource.asked).toBe(1);
  });

  it('50 verifications with a limit of 10: 40 are refused, a remembered token passes', async () => {
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
});
