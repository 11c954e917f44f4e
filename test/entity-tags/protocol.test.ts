import { describe, expect, test } from 'vitest';
import { claim, end, endRead, lookUp, open, type ProtocolTimes } from '../../src/entity-tags/protocol.ts';
import { createRecord, type TagRecord } from '../../src/entity-tags/tag-record.ts';
import type { Claim, ClaimEnd, ReadEnd } from '../../src/entity-tags/tag-store.ts';

/** The steps to the microsecond, and what they leave; what every store answers is `tag-store.contract.ts`. */
const now = 1_000_000_000;
const times: ProtocolTimes = {
  lease: 15_000_000,
  coldStart: 15_000_000,
  longestRead: 120_000_000,
};
const [A, B] = ['a'.repeat(32), 'b'.repeat(32)];
const at = (stored: TagRecord | null, moment = now, since = 0) =>
  open(stored, { now: moment, epoch: 'e', since }, times);
const record: TagRecord = { ...createRecord('e', 0), tag: A };
const token = 't';
const read: ReadEnd = {
  stamp: { epoch: 'e', startedAt: now - 1 },
  variant: 'v',
  fingerprint: 'f',
  newTag: B,
  shopTag: null,
  isOfCollection: false,
  fields: null,
};
const endOf = (stored: TagRecord | null, more: Partial<ReadEnd> = {}, moment = now) =>
  endRead(at(stored, moment), { ...read, ...more }, times);
const startedAt = (moment: number) => ({ stamp: { ...read.stamp, startedAt: moment } });
const claimOf = (stored: TagRecord | null, more: Partial<Claim> = {}, moment = now) =>
  claim(at(stored, moment), { token, tags: [A], ...more }, times);
const unleased = { tags: null, isOpen: true, isAnonymous: true } as const;
const endWrite = (stored: TagRecord | null, more: Partial<ClaimEnd>) =>
  end(at(stored), { token, tagged: true, outcome: 'applied', newTag: B, shopTag: null, ...more }, times);
const leaseOf = (more: { until?: number; tagged?: boolean; tainted?: boolean } = {}) => ({
  ...{ token, until: now + 1, tagged: true, tainted: false },
  ...more,
});

describe('a read', () => {
  test.each([
    ['as long as one may last', now - times.longestRead, B],
    ['longer', now - times.longestRead - 1, undefined],
    ['none, it began now', now, B],
    ['less than none: the clock was set back meanwhile', now + 1, undefined],
  ])('that lasted %s', (_, moment, tag) => {
    expect(endOf(null, startedAt(moment)).answer?.tag).toBe(tag);
  });

  test('that began with the last change sets no tag, one that began right after it does', () => {
    const changed = { ...record, tag: null, changedAt: now - 10 };
    expect(endOf(changed, startedAt(now - 10)).answer).toBeNull();
    expect(endOf(changed, startedAt(now - 9)).answer?.tag).toBe(B);
  });

  test('in a cold start has neither stamp nor tag, with a stamp from whenever', () => {
    const cold = at(record, now, now - times.coldStart + 1);
    expect(lookUp(cold, null)).toMatchObject({ stamp: null, unsettled: 'cold-start' });
    expect(endRead(cold, { ...read, ...startedAt(now) }, times).answer).toBeNull();
    const over = at(record, now, now - times.coldStart);
    expect(lookUp(over, null).unsettled).toBeNull();
    // It may have begun before the end of the cold start.
    expect(endRead(over, { ...read, ...startedAt(now) }, times).answer).toBeNull();
    const later = at(record, now + 1, now - times.coldStart);
    expect(endRead(later, { ...read, ...startedAt(now + 1) }, times).answer?.tag).toBe(A);
  });

  test('while a write is indeterminate sets no tag, though it began after that write', () => {
    const unknown = { ...record, indeterminateUntil: now + 1 };
    expect(lookUp(at(unknown), null)).toMatchObject({ stamp: null, unsettled: 'indeterminate' });
    expect(endOf(unknown)).toEqual({ record: unknown, answer: null });
    expect(endOf(unknown, startedAt(now)).answer).toBeNull();
  });

  test('of another state counts as a change', () => {
    const known = { ...record, fingerprints: { v: { value: 'g', at: 1, fields: '' } } };
    expect(endOf(known).record).toMatchObject({ changedAt: now, tag: B });
  });

  test('while a lease runs records nothing, and says what is known', () => {
    const leased = { ...record, leases: [leaseOf()] };
    const known = { ...leased, fingerprints: { v: { value: 'f', at: 1, fields: '' } } };
    const answer = { tag: A, fingerprint: 'f' };
    expect(endOf(leased)).toEqual({ record: leased, answer });
    expect(endOf(known, { fingerprint: 'g' }).answer).toEqual({ ...answer, fingerprint: 'g' });
    expect(endOf(known, { fingerprint: null }).answer).toEqual(answer);
    expect(endOf(record, { fingerprint: null })).toEqual({
      record,
      answer: { ...answer, fingerprint: null },
    });
  });

  test('tells how old a recorded variant is, in milliseconds', () => {
    const recorded = { ...record, fingerprints: { v: { value: 'f', at: now - 250_000, fields: '[]' } } };
    expect(lookUp(at(recorded), 'v').recorded).toEqual({ fingerprint: 'f', ageMs: 250, fields: '[]' });
  });
});

describe('a write with a tag', () => {
  const beside = { ...record, leases: [leaseOf({ tagged: false })] };

  test.each([
    [15_000_000, 500_000],
    [60_000_000, 500_000],
    [3_000_000, 100_000],
  ])('of a lease of %i waits for others, and keeps new ones from passing it for %i', (lease, turn) => {
    const waiting = claim(at(beside), { token: 'w', tags: [A] }, { ...times, lease }).record;
    expect(waiting?.wantedUntil).toBe(now + turn);
  });

  test('waits for a write with a tag without blocking others', () => {
    const tagged = { ...record, leases: [leaseOf()] };
    const crowd = { ...record, leases: Array.from({ length: 64 }, () => leaseOf({ tagged: false })) };
    const busy = { kind: 'busy', remainingMs: 0.001 };
    expect(claimOf(tagged)).toEqual({ record: tagged, answer: busy });
    expect(claimOf(tagged, { tags: null })).toEqual({ record: tagged, answer: busy });
    expect(claimOf(crowd, { tags: null })).toEqual({ record: crowd, answer: busy });
  });

  test('has its lease from the claim on', () => {
    expect(claimOf(record).record?.leases).toEqual([leaseOf({ until: now + times.lease })]);
  });

  test('beside which another one runs is tainted, as that one is', () => {
    const tainted = (stored: TagRecord, tags: readonly string[] | null = null) =>
      claimOf(stored, { token: 'w', tags }).record?.leases.map((lease) => lease.tainted);
    expect([tainted(beside), tainted(record), tainted(record, [A])]).toEqual([
      [true, true],
      [false],
      [false],
    ]);
    expect(tainted({ ...record, tag: null, indeterminateUntil: now + 1 })).toEqual([true]);
  });

  test('is overtaken by others when its turn is over, not before', () => {
    const waiting = { ...record, wantedUntil: now };
    expect(claimOf(waiting, { tags: null }).answer.kind).toBe('granted');
    expect(claimOf(waiting, { tags: null }, now - 1).answer).toEqual({ kind: 'busy', remainingMs: 0.001 });
  });

  test('that is granted waits no longer, and leaves strangers what they have', () => {
    const waited = { ...record, wantedUntil: now + 9, anonymousWrote: true, priorityUntil: now + 9 };
    expect(claimOf(waited).record).toMatchObject({
      wantedUntil: 0,
      anonymousWrote: true,
      priorityUntil: null,
    });
    expect(claimOf(record).record).toMatchObject({ wantedUntil: 0, priorityUntil: null });
    const untagged = { ...record, priorityUntil: now + 9 };
    expect(claimOf(untagged, { tags: null }).record).toMatchObject({ priorityUntil: now + 9 });
  });

  test('of a member that is deleted leaves neither tag nor what the shop calls it', () => {
    const stored = { ...record, leases: [leaseOf()] };
    expect(endWrite(stored, { newTag: null, shopTag: 's' })).toEqual({
      record: { ...record, tag: null, changedAt: now },
      answer: null,
    });
  });

  test('that changed nothing leaves no record of what nobody has, but all that says anything', () => {
    const made = { ...record, tag: null, leases: [leaseOf()] };
    const unsent = (stored: TagRecord | null) => endWrite(stored, { outcome: 'unsent' }).record;
    expect([unsent(made), unsent(claimOf(null, { tags: null }).record)]).toEqual([null, null]);
    expect(unsent({ ...made, tag: A })).toEqual(record);
    for (const says of [{ changedAt: 7 }, { indeterminateUntil: now + 1 }]) {
      expect(unsent({ ...made, ...says })).toEqual({ ...record, tag: null, ...says });
    }
    const other = { ...leaseOf(), token: 'other' };
    expect(unsent({ ...made, leases: [leaseOf(), other] })?.leases).toEqual([other]);
  });

  test('expires at its end, not before', () => {
    const leased = { ...record, leases: [leaseOf()] };
    expect(at(leased, now).record).toEqual(leased);
    expect(at(leased, now + 1).record).toMatchObject({ tag: null, leases: [], changedAt: now + 1 });
    const unknown = { ...record, tag: null, indeterminateUntil: now, indeterminateTagged: true };
    expect(at(unknown, now).record).toMatchObject({ indeterminateUntil: 0, indeterminateTagged: false });
  });

  test('is answered how long it waits', () => {
    const cold = at(record, now, now - times.coldStart + 2_500_000);
    expect(claim(cold, { token, tags: [A] }, times)).toEqual({
      record,
      answer: { kind: 'cold-start', remainingMs: 2500 },
    });
    const unknown = { ...record, tag: null, indeterminateUntil: now + 2_500_000 };
    const answer = { kind: 'indeterminate', remainingMs: 2500 };
    expect(claimOf(unknown).answer).toEqual(answer);
    expect(claimOf({ ...unknown, indeterminateTagged: true }, { tags: null }).answer).toEqual(answer);
    expect(claimOf({ ...unknown, indeterminateTagged: true }, unleased).answer).toEqual(answer);
  });
});

describe("strangers' turns", () => {
  const lasts = times.lease / 3;
  const marked = endWrite(record, { token: 's', tagged: false, newTag: null, isOpen: true }).record;
  const overtaken = startedAt(now);

  test('a stranger who changed something is remembered, nobody else is', () => {
    expect(marked).toMatchObject({
      tag: null,
      changedAt: now,
      anonymousWrote: true,
      priorityUntil: null,
    });
    expect(endWrite(record, { token: 's', tagged: false, newTag: null }).record?.anonymousWrote).toBe(false);
    expect(endWrite(null, { token: 's', tagged: false, newTag: null }).record).toMatchObject({
      wantedUntil: 0,
      anonymousWrote: false,
    });
  });

  test.each([
    ['a write', (stranger: Partial<Claim>) => claimOf(marked, stranger).record],
    ['a read', (stranger: Partial<ReadEnd>) => endOf(marked, { ...overtaken, ...stranger }).record],
  ])('%s that one got in the way of is given time; of another stranger it is not', (_, leaves) => {
    expect(leaves({})?.priorityUntil).toBe(now + lasts);
    expect(leaves({ isAnonymous: false })?.priorityUntil).toBe(now + lasts);
    expect(leaves({ isAnonymous: true })?.priorityUntil).toBeNull();
  });

  test('nobody gets a turn where no request without a tag has changed anything', () => {
    expect(claimOf(record, { tags: [B] }).record).toBe(record);
  });

  test('strangers pass when it is over, and have as much before the next one', () => {
    const given = { ...record, anonymousWrote: true, priorityUntil: now + lasts };
    expect(claimOf(given, unleased).answer).toEqual({ kind: 'busy', remainingMs: lasts / 1000 });
    expect(claimOf(given, unleased, now + lasts).answer.kind).toBe('granted');
    const dead = { tags: [B] };
    expect(claimOf(given, dead, now + 2 * lasts - 1).record?.priorityUntil).toBe(now + lasts);
    expect(claimOf(given, dead, now + 2 * lasts).record?.priorityUntil).toBe(now + 3 * lasts);
  });
});
