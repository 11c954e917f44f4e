import { describe, expect, test } from 'vitest';
import {
  claim,
  end,
  endRead,
  lookUp,
  markSent,
  open,
  type ProtocolTimes,
} from '../../src/entity-tags/protocol.ts';
import { createRecord, type TagRecord } from '../../src/entity-tags/tag-record.ts';
import type { Claim, ClaimEnd, ReadEnd } from '../../src/entity-tags/tag-store.ts';

/** The steps to the microsecond, and what they leave; what every store answers is `tag-store.contract.ts`. */
const now = 1_000_000_000;
const times: ProtocolTimes = {
  lease: 15_000_000,
  sendBy: 2_000_000,
  coldStart: 15_000_000,
  longestRead: 120_000_000,
};
const [A, B] = ['a'.repeat(32), 'b'.repeat(32)];
const at = (stored: TagRecord | null, moment = now, since = 0) =>
  open(stored, { now: moment, epoch: 'e', since }, times);
const record: TagRecord = { ...createRecord('e', 5), tag: A };
const token = 't';
const read: ReadEnd = {
  stamp: { epoch: 'e', generation: null, startedAt: now - 1 },
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
const unleased = { tags: null, isOpen: true, isOfStranger: true } as const;
const endWrite = (stored: TagRecord | null, more: Partial<ClaimEnd>) =>
  end(at(stored), { token, tagged: true, outcome: 'applied', newTag: B, shopTag: null, ...more }, times);
const leaseOf = (more: { tagged?: boolean; tainted?: boolean } = {}) => ({
  ...{ token, until: now + 1, tagged: true, tainted: false, sent: true },
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
    const stamp = { epoch: 'e', generation: record.generation, startedAt: now };
    expect(endRead(cold, { ...read, stamp }, times).answer).toBeNull();
    const over = at(record, now, now - times.coldStart);
    expect(lookUp(over, null).unsettled).toBeNull();
    // A time proves nothing where it may be before the end of the cold start.
    expect(endRead(over, { ...read, ...startedAt(now) }, times).answer).toBeNull();
    expect(endRead(over, { ...read, stamp }, times).answer?.tag).toBe(A);
  });

  test('while a write is indeterminate sets no tag, though it began after that write', () => {
    const unknown = { ...record, indeterminateUntil: now + 1 };
    expect(lookUp(at(unknown), null)).toMatchObject({ stamp: null, unsettled: 'indeterminate' });
    expect(endOf(unknown)).toEqual({ record: unknown, answer: null });
    const stamp = { epoch: 'e', generation: record.generation, startedAt: now };
    expect(endOf(unknown, { stamp }).answer).toBeNull();
  });

  test('of another state advances the generation by one; what was seen is kept short', () => {
    const seen = endOf(record, { variant: 'v'.repeat(22), fingerprint: 'f'.repeat(43) }).record;
    expect(seen?.lastSeen).toHaveLength(60);
    const known = { ...record, fingerprints: { v: { value: 'g', at: 1, fields: '' } } };
    expect(endOf(known).record).toMatchObject({ generation: 6, changedAt: now, tag: B });
  });

  test('while a lease runs records nothing, and says what is known', () => {
    const leased = { ...record, leases: [leaseOf()] };
    const known = { ...leased, fingerprints: { v: { value: 'f', at: 1, fields: '' } } };
    const answer = { tag: A, isUnchanged: false, isReplaced: false };
    expect(endOf(leased)).toEqual({ record: leased, answer });
    expect(endOf(known).answer).toEqual({ ...answer, isUnchanged: true });
    expect(endOf(record, { fingerprint: null })).toEqual({ record, answer });
  });

  test('tells how old a recorded variant is, in milliseconds', () => {
    const recorded = { ...record, fingerprints: { v: { value: 'f', at: now - 250_000, fields: '[]' } } };
    expect(lookUp(at(recorded), 'v').recorded).toEqual({ ageMs: 250, fields: '[]' });
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

  test('that is sent keeps its lease as long as leases last, from when it was claimed, said once or twice', () => {
    const claimed = claimOf(record).record;
    expect(claimed?.leases).toEqual([expect.objectContaining({ until: now + times.sendBy, sent: false })]);
    const sent = markSent(at(claimed, now + 10), token, times);
    expect(sent.answer).toBe(true);
    expect(sent.record?.leases).toEqual([
      expect.objectContaining({ token, until: now + times.lease, sent: true }),
    ]);
    expect(markSent(at(sent.record, now + 20), token, times)).toEqual(sent);
    expect(markSent(at(claimed), 'w', times)).toEqual({ record: claimed, answer: false });
    expect(markSent(at(null), token, times)).toEqual({ record: null, answer: false });
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
    const waited = { ...record, wantedUntil: now + 9, strangersWrote: true, turnUntil: now + 9 };
    expect(claimOf(waited).record).toMatchObject({ wantedUntil: 0, strangersWrote: true, turnUntil: null });
    expect(claimOf(record).record).toMatchObject({ wantedUntil: 0, turnUntil: null });
    const untagged = { ...record, turnUntil: now + 9 };
    expect(claimOf(untagged, { tags: null }).record).toMatchObject({ turnUntil: now + 9 });
  });

  test('of a member that is deleted leaves neither tag nor what the shop calls it', () => {
    const stored = { ...record, lastSeen: 'v|f', leases: [leaseOf()] };
    expect(endWrite(stored, { newTag: null, shopTag: 's' })).toEqual({
      record: { ...record, tag: null, generation: 6, changedAt: now, lastSeen: 'v|f', replaced: 'v|f' },
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

  test('runs out at its end, not before; one that has not left leaves the tag', () => {
    const leased = { ...record, leases: [leaseOf()] };
    expect(at(leased, now).record).toEqual(leased);
    expect(at(leased, now + 1).record).toMatchObject({ tag: null, leases: [], changedAt: now + 1 });
    const kept = { ...record, leases: [{ ...leaseOf(), sent: false }] };
    expect(at(kept, now + 1).record).toEqual(record);
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
  const overtaken = { stamp: { ...read.stamp, generation: record.generation } };

  test('a stranger who changed something is remembered, nobody else is', () => {
    expect(marked).toMatchObject({
      tag: null,
      generation: 6,
      changedAt: now,
      strangersWrote: true,
      turnUntil: null,
    });
    expect(endWrite(record, { token: 's', tagged: false, newTag: null }).record?.strangersWrote).toBe(false);
    expect(endWrite(null, { token: 's', tagged: false, newTag: null }).record).toMatchObject({
      wantedUntil: 0,
      strangersWrote: false,
    });
  });

  test.each([
    ['a write', (stranger: Partial<Claim>) => claimOf(marked, stranger).record],
    ['a read', (stranger: Partial<ReadEnd>) => endOf(marked, { ...overtaken, ...stranger }).record],
  ])('%s that one got in the way of is given time; of another stranger it is not', (_, leaves) => {
    expect(leaves({})?.turnUntil).toBe(now + lasts);
    expect(leaves({ isOfStranger: false })?.turnUntil).toBe(now + lasts);
    expect(leaves({ isOfStranger: true })?.turnUntil).toBeNull();
  });

  test('nobody gets a turn where no request without a tag has changed anything', () => {
    expect(claimOf(record, { tags: [B] }).record).toBe(record);
  });

  test('strangers pass when it is over, and have as much before the next one', () => {
    const given = { ...record, strangersWrote: true, turnUntil: now + lasts };
    expect(claimOf(given, unleased).answer).toEqual({ kind: 'busy', remainingMs: lasts / 1000 });
    expect(claimOf(given, unleased, now + lasts).answer.kind).toBe('granted');
    const dead = { tags: [B] };
    expect(claimOf(given, dead, now + 2 * lasts - 1).record?.turnUntil).toBe(now + lasts);
    expect(claimOf(given, dead, now + 2 * lasts).record?.turnUntil).toBe(now + 3 * lasts);
  });
});
