import { describe, expect, it } from 'vitest';
import { inspectToken } from '../../../src/access/token-inspection.ts';
import { TokenIssuers } from '../../../src/access/token-issuers.ts';
import { isRejection } from '../../../src/http/rejection.ts';
import { makeSigner, makeToken } from './signing.ts';
import { StubKeySource, verificationKey } from './stub-key-source.ts';
import { createVerifier, nowSeconds } from './verifier-setup.ts';

const rsa = makeSigner('RS256', 'k1');
const named = makeSigner('RS256', 'named');
const good = {
  ...{ sub: 'DE--21', iss: 'us', aud: 'shop', exp: nowSeconds + 100, nbf: nowSeconds, iat: nowSeconds },
  ...{ scope: 'customer', secretClaim: 'not for print' },
};

async function inspect(token: string, scopes: readonly string[] = [], source?: object, forward = {}) {
  const keySource = new StubKeySource([verificationKey(rsa), verificationKey(named)]);
  const rules = {
    ...{ algorithms: ['RS256'], issuer: 'us', audience: 'shop', subject: 'sub' },
    ...{ clockToleranceMs: 5000, maxTokenAgeMs: 1_000_000, now: () => nowSeconds * 1000 },
    keySource: Object.assign(keySource, source),
  };
  const { verifier } = createVerifier(rules);
  const only = { name: undefined, issuer: 'us', introspected: undefined, signed: verifier };
  const issuers = new TokenIssuers([{ ...only, rules, keys: { source: rules.keySource } }]);
  const { facts, verdict } = await inspectToken(token, issuers, { scopes }, forward);
  return { facts, reason: isRejection(verdict) ? verdict.reason : undefined };
}

describe('inspectToken', () => {
  /** In the order of the checks. */
  const ordered = [
    ['expired', { exp: nowSeconds - 60 }],
    ['not-before', { nbf: nowSeconds + 60 }],
    ['issued-in-future', { iat: nowSeconds + 60 }],
    ['issuer', { iss: 'them' }],
    ['audience', { aud: 'other' }],
    ['subject', { sub: '' }],
  ] as const;
  it.each(ordered.slice(0, -1).map((one, i) => [one[0], { ...one[1], ...ordered[i + 1]?.[1] }] as const))(
    'reports the fault that is checked first: %s',
    async (reason, claims) => {
      expect((await inspect(makeToken(rsa, { ...good, ...claims }))).reason).toBe(reason);
    },
  );

  it('shows no secret claim and no signature of a good token', async () => {
    const token = makeToken(rsa, good);
    const { reason, facts } = await inspect(token, ['customer']);
    expect(reason).toBeUndefined();
    const text = JSON.stringify(facts);
    expect(text).not.toContain('not for print');
    expect(text).not.toContain(token.split('.')[2]);
    expect(facts).toMatchObject({ exp: expect.stringContaining('in 100 s') });
  });

  it.each([
    [2048, undefined],
    [2049, 'identity-too-long'],
  ])('a forwarded claim of %i octets: %s', async (octets, reason) => {
    // A forwarded % has three octets.
    const sub = `%${'x'.repeat(octets - 3)}`;
    const forward = { subject: 'X-Sub' };
    const token = makeToken(rsa, { ...good, sub });
    const found = await inspect(token, ['customer'], undefined, forward);
    expect(found.reason).toBe(reason);
    expect(found.facts.fields).toBe(`X-Sub has ${octets} octets; 2048 at most (auth.forward)`);
    // A missing scope is reported first.
    expect((await inspect(token, ['analyst'], undefined, forward)).reason).toBe('scope');
  });

  const textOf = async (name: string, changed: object, source?: object) =>
    (await inspect(makeToken(rsa, { ...good, ...changed }), [], source)).facts[name];

  it('shows the maximum age, a missing nbf as none, and a date after the year 9999', async () => {
    expect(await textOf('iat', {})).toMatch(/, 17 min old at most \(auth\.maxTokenAge\)$/);
    expect(await textOf('nbf', { nbf: undefined })).toBe('none');
    expect(await textOf('exp', { exp: 8.64e12 })).toContain('+275760-09-13');
  });

  it('a long value is cut at 120 characters', async () => {
    const shown = async (length: number) => textOf('subject', { sub: 's'.repeat(length) });
    expect(await shown(118)).toContain(`"${'s'.repeat(118)}" (`);
    expect(await shown(119)).toContain(`"${'s'.repeat(119)}... (`);
  });
});
