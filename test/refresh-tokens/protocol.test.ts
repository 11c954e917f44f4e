import { describe, expect, test } from 'vitest';
import { newFamily } from '../../src/refresh-tokens/issue.ts';
import {
  admit,
  blankBook,
  blankRecord,
  claim,
  confirm,
  markUsed,
  recordIssued,
  revokedAt,
  stateOf,
} from '../../src/refresh-tokens/protocol.ts';
import { newSubject } from './store-contract.ts';

/** The steps to the millisecond, and what they leave; what every store answers is `store-contract.ts`. */
const now = 1_700_000_000_000;
const family = newFamily();
const life = { issuedAtMs: now - 10, expiresAtMs: now + 10 };
const claimed = { op: 'a', untilMs: now + 1, isIndeterminate: false };

describe('what nobody has seen', () => {
  test('has no generation, no lifetime and no family', () => {
    expect(claim(blankRecord, 'a', 5, now).answer).toEqual({
      kind: 'granted',
      ...{ subject: null, generation: 0, family: null, isKnown: false, revokedBy: [] },
    });
    expect(claim({ ...blankRecord, usedAtMs: now - 3 }, 'a', 5, now).answer).toEqual({
      kind: 'used',
      ...{ subject: null, generation: 0, family: null, lifetimeMs: 0, usedForMs: 3, sealed: null },
    });
  });

  test('is admitted until a subject, or all of them, have had their share', () => {
    const limits = { perSubject: 1, inAll: 2 };
    const subject = newSubject();
    const first = admit(blankBook, subject, limits, 100, now);
    expect(first).toMatchObject({ isAdmitted: true, book: { untilMs: now + 100, inAll: 1 } });
    expect(admit(first.book, subject, limits, 100, now).isAdmitted).toBe(false);
    // A refresh is nobody's: only the bound of all of them counts.
    const second = admit(first.book, null, limits, 100, now);
    expect(second.isAdmitted).toBe(true);
    expect(admit(second.book, null, limits, 100, now).isAdmitted).toBe(false);
    expect(admit(second.book, subject, limits, 100, now + 100).book).toMatchObject({ inAll: 1 });
  });
});

test.each([
  [{ life }, now + 9, 'valid'],
  [{ life }, now + 10, 'expired'],
  [{ claim: claimed }, now, 'in-exchange'],
  [{ claim: claimed }, now + 1, 'valid'],
  [{ life, claim: claimed }, now + 10, 'expired'],
  [{ life, usedAtMs: now }, now + 10, 'used'],
])('%j at %i is %s', (more, moment, state) => {
  expect(stateOf({ ...blankRecord, ...more }, moment)).toBe(state);
});

test('a claim under way says how long at most, and whether its outcome is known', () => {
  const underWay = { ...blankRecord, claim: { ...claimed, untilMs: now + 7 } };
  const answer = { kind: 'in-exchange', remainingMs: 7, isIndeterminate: false };
  expect(claim(underWay, 'b', 5, now)).toEqual({ record: underWay, answer });
  expect(confirm(underWay, 'a', 50, now).record.claim).toEqual({ ...claimed, untilMs: now + 50 });
});

test('what was used gets no life when it is issued again, and no longer one when it is used again', () => {
  const issued = { subject: null, generation: 0, family, lifetimeMs: 1000 };
  const used = { ...blankRecord, usedAtMs: now - 1 };
  expect(recordIssued(used, issued, now)).toBe(used);
  expect(recordIssued({ ...blankRecord, life }, { ...issued, lifetimeMs: 1 }, now).life).toEqual(life);
  const use = { owner: null, family, isProven: true, answer: null };
  const twice = markUsed({ ...used, life }, use, 1000, now, () => false).record;
  expect([twice.usedAtMs, twice.life]).toEqual([now - 1, life]);
});

test('the sealed answer is given until the leeway is over', () => {
  const sealed = (untilMs: number) =>
    claim({ ...blankRecord, usedAtMs: now - 1, answer: { sealed: 's', untilMs } }, 'a', 5, now).answer;
  expect([sealed(now + 1), sealed(now)]).toMatchObject([{ sealed: 's' }, { sealed: null }]);
});

test('the first note of its own subject counts, settled or pending', () => {
  const [subject, other] = [newSubject(), newSubject()];
  const notes = new Map([[subject, now - 2]]);
  const pending = new Map([
    ['a', { by: subject, atMs: now - 3 }],
    ['b', { by: other, atMs: now - 9 }],
  ]);
  expect(revokedAt({ ...blankRecord, subject, notes, pending })).toBe(now - 3);
  expect(revokedAt({ ...blankRecord, subject, notes })).toBe(now - 2);
  expect(revokedAt({ ...blankRecord, notes, pending })).toBeNull();
});
