import { describe, expect, it } from 'vitest';
import { KeySet, maxCandidates, mergeKeys } from '../../src/access/key-source.ts';
import { FetchBudget } from '../../src/access/provider-fetch.ts';
import { makeSigner } from './signing.ts';
import { verificationKey } from './stub-key-source.ts';

const keys = Array.from({ length: 20 }, (_, i) => verificationKey(makeSigner('ES256', `key-${i}`)));

describe('a set of keys', () => {
  it('has no more than 16 of them tried for one token, whatever the token leaves open', () => {
    const set = new KeySet(keys);
    expect(maxCandidates).toBe(16);
    expect(set.find({ alg: 'ES256', kid: undefined })).toEqual(keys.slice(0, 16));
    expect(set.findUntried({ alg: 'ES256', kid: undefined }, keys.slice(0, 10))).toEqual(keys.slice(10, 16));
  });

  it('has only the named key tried, and none of another algorithm', () => {
    const set = new KeySet(keys);
    expect(set.find({ alg: 'ES256', kid: 'key-19' })).toEqual([keys[19]]);
    expect(set.find({ alg: 'RS256', kid: 'key-19' })).toEqual([]);
    expect(set.find({ alg: 'ES256', kid: 'nobody' })).toEqual([]);
  });

  it('is the same in another order, and another with one key less', () => {
    expect(new KeySet(keys).isSameAs(new KeySet(keys.toReversed()))).toBe(true);
    expect(new KeySet(keys).isSameAs(new KeySet(keys.slice(1)))).toBe(false);
    const [one, ...rest] = keys as [(typeof keys)[0]];
    for (const change of [{ kid: 'b' }, { kid: undefined }, { algorithms: ['x'] }, { fingerprint: 'f' }])
      expect(new KeySet([{ ...one, ...change }, ...rest]).isSameAs(new KeySet(keys))).toBe(false);
  });

  it('counts a key once, and names a kid that two keys bear', () => {
    const [one, other] = keys as [(typeof keys)[0], (typeof keys)[0]];
    expect(mergeKeys([one, one])).toEqual({ keys: [one], ambiguousKids: [] });
    expect(mergeKeys([one, { ...other, kid: one.kid }]).ambiguousKids).toEqual([one.kid]);
    const [renamed, otherwise] = [
      { ...one, kid: 'b' },
      { ...one, algorithms: ['x'] },
    ];
    expect(mergeKeys([one, renamed])).toEqual({ keys: [one, renamed], ambiguousKids: [] });
    expect(mergeKeys([one, otherwise])).toEqual({ keys: [one, otherwise], ambiguousKids: [] });
    const nameless = [one, other].map((key) => ({ ...key, kid: undefined }));
    expect(mergeKeys(nameless)).toEqual({ keys: nameless, ambiguousKids: [] });
  });
});

describe('the budget of fetches', () => {
  it('has its burst at once, then one for each interval', () => {
    const budget = new FetchBudget(2, 250);
    for (let i = 0; i < 2; i++) {
      expect(budget.restMs(0)).toBe(0);
      budget.spend(0);
    }
    expect(budget.restMs(0)).toBe(250);
    expect(budget.restMs(100)).toBe(150);
    expect(budget.restMs(250)).toBe(0);
    budget.spend(250);
    expect(budget.restMs(250)).toBe(250);
  });

  it('never saves up more than its burst', () => {
    const budget = new FetchBudget(2, 250);
    budget.restMs(0);
    for (let i = 0; i < 2; i++) budget.spend(1_000_000);
    expect(budget.restMs(1_000_000)).toBe(250);
  });

  it('is closed for so long after a failure, and opens where the clock is set back', () => {
    const budget = new FetchBudget(2, 250);
    budget.close(1_000, 500);
    expect([budget.restMs(1_000), budget.isClosed(1_499)]).toEqual([500, true]);
    expect([budget.restMs(1_500), budget.isClosed(1_500)]).toEqual([0, false]);
    budget.close(2_000, 500);
    expect(budget.isClosed(1_999)).toBe(false);
  });
});
