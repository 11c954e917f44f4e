import { expect, it } from 'vitest';
import { countTokens } from '../../src/refresh-tokens/census.ts';
import type { TokenEntry } from '../../src/refresh-tokens/token-values.ts';

const entry = (more: object): TokenEntry => ({
  token: 'planted-digest' as TokenEntry['token'],
  subject: null,
  family: null,
  state: 'valid',
  issuedAtMs: 5,
  expiresAtMs: 10,
  usedAtMs: null,
  revokedAtMs: null,
  ...more,
});

async function* listOf(entries: Iterable<TokenEntry>) {
  yield* entries;
}

it('counts tokens, states, logins and users, and tells nothing of any of them', async () => {
  const counted = await countTokens(
    listOf([
      entry({ family: 'one', subject: 'planted-user', state: 'used', issuedAtMs: 3 }),
      entry({ family: 'one', subject: 'planted-user' }),
      entry({ family: 'two', subject: 'planted-other', state: 'revoked', issuedAtMs: 9 }),
      entry({ state: 'expired' }),
    ]),
  );
  expect(counted).toEqual({
    tokens: 4,
    states: { valid: 1, 'in-exchange': 0, used: 1, revoked: 1, expired: 1 },
    families: 2,
    livingFamilies: 1,
    largestFamily: 2,
    subjects: 2,
    oldestIssuedMs: 3,
    newestIssuedMs: 9,
    isWhole: true,
  });
  expect(JSON.stringify(counted)).not.toMatch(/planted/);
});

it('stops at its bounds of number and of time, and says that it did', async () => {
  function* endless() {
    for (;;) yield entry({});
  }
  expect(await countTokens(listOf(endless()), { max: 100 })).toMatchObject({ tokens: 100, isWhole: false });
  let nowMs = 0;
  const now = () => (nowMs += 100);
  const { tokens, isWhole } = await countTokens(listOf(endless()), { now });
  expect([tokens < 100, isWhole]).toEqual([true, false]);
  expect(await countTokens(listOf([]))).toMatchObject({ tokens: 0, oldestIssuedMs: null, isWhole: true });
});
