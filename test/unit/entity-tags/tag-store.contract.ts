import { describe, expect, test } from 'vitest';
import { digest, guardedKey } from '../../../src/entity-tags/keys.ts';
import { noTag } from '../../../src/entity-tags/protocol.ts';
import type {
  ClaimEnd,
  ReadEnd,
  ReadStamp,
  ResourceKey,
  TagStore,
} from '../../../src/entity-tags/tag-store.ts';
import { type EntityTagTimes, entityTagTimes } from '../../../src/entity-tags/times.ts';

/** A store under test. The test moves its clock. */
export interface StoreUnderTest {
  readonly store: TagStore;
  /** Moves the store's clock forward. */
  advance(ms: number): Promise<void>;
}

export const leaseMs = 15_000;

export function timesOf(more: { leaseMs?: number; sendByMs?: number } = {}): EntityTagTimes {
  const settings = { leaseMs, sendByMs: 2000, storeTimeoutMs: 500, responseTimeoutMs: 60_000, ...more };
  const times = entityTagTimes(settings);
  if ('problem' in times) throw new Error(times.problem);
  return times;
}

const t = (letter: string) => letter.repeat(32);
const [A, B, C] = [t('a'), t('b'), t('c')] as const;

/** Tests for every tag store. `create` returns a store after its cold start. */
export function describeTagStore(name: string, create: () => Promise<StoreUnderTest>): void {
  let keys = 0;
  const freshKey = (): ResourceKey => {
    keys += 1;
    return digest([name, String(keys), String(Math.random())]);
  };
  /** Starts a read one millisecond later: one that starts in the microsecond of a change gets no tag. */
  const begin = async (under: StoreUnderTest, key: ResourceKey): Promise<ReadStamp | null> => {
    await under.advance(1);
    return (await under.store.lookUp(key)).stamp;
  };
  const endReadWhole = (
    under: StoreUnderTest,
    key: ResourceKey,
    stamp: ReadStamp | null,
    more: Partial<ReadEnd> = {},
  ) =>
    stamp === null
      ? null
      : under.store.endRead(key, {
          stamp,
          variant: 'v',
          fingerprint: 'f',
          newTag: A,
          shopTag: null,
          isOfCollection: false,
          ...more,
        });
  const endRead = async (...args: Parameters<typeof endReadWhole>) =>
    (await endReadWhole(...args))?.tag ?? null;
  const read = async (under: StoreUnderTest, key: ResourceKey, more: Partial<ReadEnd> = {}) =>
    endRead(under, key, await begin(under, key), more);
  const fingerprintOf = async (under: StoreUnderTest, key: ResourceKey, more: Partial<ReadEnd> = {}) =>
    (await endReadWhole(under, key, await begin(under, key), more))?.fingerprint;
  const end = (under: StoreUnderTest, key: ResourceKey, more: Partial<ClaimEnd>) =>
    under.store.end(key, {
      token: 't1',
      tagged: true,
      outcome: 'applied',
      newTag: B,
      shopTag: null,
      ...more,
    });
  const claim = async (
    under: StoreUnderTest,
    key: ResourceKey,
    token: string,
    tags: readonly string[] | null,
  ) => under.store.claim(key, { token, tags });
  const kindOf = async (
    under: StoreUnderTest,
    key: ResourceKey,
    token: string,
    tags: readonly string[] | null,
  ) => (await claim(under, key, token, tags)).kind;

  describe(`${name}: the contract of tag stores`, () => {
    test('a first read sets the tag, the same state keeps it, another state replaces it', async () => {
      const under = await create();
      const key = freshKey();
      expect(await read(under, key)).toBe(A);
      expect(await read(under, key, { newTag: B })).toBe(A);
      expect(await read(under, key, { newTag: B, fingerprint: 'g' })).toBe(B);
      expect(await read(under, key, { newTag: C })).toBe(C);
    });

    test('up to 32 variants have the tag of their state; a 33rd replaces the recorded ones', async () => {
      const under = await create();
      const key = freshKey();
      for (let i = 0; i < 32; i += 1)
        expect(await read(under, key, { variant: `v${i}`, fingerprint: `f${i}` })).toBe(A);
      expect(await read(under, key, { variant: 'v0', fingerprint: 'f0', newTag: B })).toBe(A);
      expect(await read(under, key, { variant: 'v32' })).toBe(A);
      expect(await read(under, key, { variant: 'v0', fingerprint: 'other', newTag: B })).toBe(A);
      expect(await read(under, key, { variant: 'v32', fingerprint: 'other', newTag: B })).toBe(B);
    });

    test('a HEAD records nothing and gives the current tag', async () => {
      const under = await create();
      const key = freshKey();
      expect(await read(under, key, { fingerprint: null })).toBeNull();
      await read(under, key);
      expect(await read(under, key, { fingerprint: null })).toBe(A);
    });

    test('a HEAD gets the recorded fingerprint of its variant, a GET its own', async () => {
      const under = await create();
      const key = freshKey();
      const head = { fingerprint: null };
      expect(await fingerprintOf(under, key, head)).toBeUndefined();
      expect(await fingerprintOf(under, key)).toBe('f');
      expect(await fingerprintOf(under, key, head)).toBe('f');
      expect(await fingerprintOf(under, key, { ...head, variant: 'w' })).toBeNull();
      await claim(under, key, 't1', [A]);
      expect(await fingerprintOf(under, key, { fingerprint: 'g' })).toBe('g');
      expect(await fingerprintOf(under, key, head)).toBe('f');
      await end(under, key, {});
      await under.advance(1);
      expect(await read(under, key, head)).toBe(B);
      expect(await fingerprintOf(under, key, head)).toBeNull();
    });

    test('a read of ten minutes sets no tag', async () => {
      const under = await create();
      const key = freshKey();
      const stamp = await begin(under, key);
      await under.advance(600_000);
      expect(await endRead(under, key, stamp)).toBeNull();
    });

    test('a claim is granted if one of its tags is current', async () => {
      const under = await create();
      const key = freshKey();
      expect(await kindOf(under, key, 't0', [A])).toBe('not-current');
      await read(under, key);
      expect(await kindOf(under, key, 't0', [])).toBe('not-current');
      expect(await kindOf(under, key, 't0', [B, C])).toBe('not-current');
      expect(await kindOf(under, key, 't1', [B, A])).toBe('granted');
      expect(await kindOf(under, key, 't2', [B])).toBe('not-current');
      expect(await claim(under, key, 't2', [A])).toMatchObject({
        kind: 'busy',
        remainingMs: expect.any(Number),
      });
      expect(await kindOf(under, key, 't2', null)).toBe('busy');
    });

    test('a creation is granted while no tag is current, and excludes all other writes', async () => {
      const under = await create();
      const key = freshKey();
      const anonymous = { token: 's', tags: [noTag], isAnonymous: true, isOpen: true };
      const passes = async () => (await under.store.claim(key, anonymous)).kind;
      expect(await passes()).toBe('granted');
      expect(await kindOf(under, key, 't1', [noTag])).toBe('granted');
      expect(await kindOf(under, key, 't2', [noTag])).toBe('busy');
      expect(await kindOf(under, key, 't3', null)).toBe('busy');
      expect(await passes()).toBe('busy');
      expect(await end(under, key, { token: 't1', newTag: A })).toBe(A);
      expect(await kindOf(under, key, 't2', [noTag])).toBe('not-current');
      expect(await passes()).toBe('not-current');
      expect(await kindOf(under, key, 't4', [A])).toBe('granted');
      await end(under, key, { token: 't4', newTag: null });
      expect(await kindOf(under, key, 't5', [noTag])).toBe('granted');
      await end(under, key, { token: 't5', outcome: 'unknown' });
      expect(await kindOf(under, key, 't6', [noTag])).toBe('indeterminate');
      expect(await passes()).toBe('indeterminate');
    });

    test.each([
      ['applied', B, 'granted', 'not-current'],
      ['unsent', null, 'not-current', 'granted'],
      ['refused', null, 'not-current', 'granted'],
      ['invalidated', null, 'not-current', 'not-current'],
      ['unknown', null, 'indeterminate', 'indeterminate'],
    ] as const)(
      'a write that is %s returns the tag %s; a claim with the new tag: %s, with the old one: %s',
      async (outcome, tag, withNew, withOld) => {
        const under = await create();
        for (const [tried, expected] of [
          [B, withNew],
          [A, withOld],
        ] as const) {
          const key = freshKey();
          await read(under, key);
          await claim(under, key, 't1', [A]);
          expect(await end(under, key, { outcome })).toBe(tag);
          expect(await kindOf(under, key, 't2', [tried])).toBe(expected);
        }
      },
    );

    test('a deleted member has no tag', async () => {
      const under = await create();
      const key = freshKey();
      await read(under, key);
      await claim(under, key, 't1', [A]);
      expect(await end(under, key, { newTag: null })).toBeNull();
      expect((await under.store.lookUp(key)).tag).toBeNull();
    });

    test('a read during a lease gets the old tag and records nothing', async () => {
      const under = await create();
      const key = freshKey();
      await read(under, key);
      await claim(under, key, 't1', [A]);
      expect(await read(under, key, { fingerprint: 'g', newTag: C })).toBe(A);
      expect((await under.store.lookUp(key)).unsettled).toBe('lease');
      await end(under, key, { outcome: 'refused' });
      expect(await read(under, key, { newTag: C })).toBe(A);
    });

    test('a late end keeps the tag after refused and unsent, and replaces it after invalidated', async () => {
      const under = await create();
      const key = freshKey();
      await read(under, key);
      expect(await end(under, key, { token: 'gone', outcome: 'refused' })).toBeNull();
      expect(await end(under, key, { token: 'gone', outcome: 'unsent' })).toBeNull();
      expect(await read(under, key, { newTag: B })).toBe(A);
      expect(await end(under, key, { token: 'gone', outcome: 'invalidated' })).toBeNull();
      expect(await read(under, key, { newTag: B })).toBe(B);
    });

    test('after an unknown write without a tag another one is granted, and leaves no tag', async () => {
      const under = await create();
      const key = freshKey();
      await claim(under, key, 't1', null);
      await end(under, key, { outcome: 'unknown', tagged: false });
      expect(await kindOf(under, key, 't2', null)).toBe('granted');
      expect(await end(under, key, { token: 't2', tagged: false })).toBeNull();
      expect(await read(under, key)).toBeNull();
      await under.advance(leaseMs + 1);
      expect(await read(under, key)).toBe(A);
    });

    test('64 writes without a tag run at a time, a 65th is busy; the tag is gone after all have ended', async () => {
      const under = await create();
      const key = freshKey();
      await read(under, key);
      for (let i = 0; i < 64; i += 1) expect(await kindOf(under, key, `t${i}`, null)).toBe('granted');
      expect(await claim(under, key, 'one more', null)).toMatchObject({ kind: 'busy' });
      const untagged = { tagged: false, newTag: C };
      expect(await end(under, key, { ...untagged, token: 't0', outcome: 'refused' })).toBeNull();
      expect(await read(under, key, { newTag: B })).toBe(A);
      await under.advance(1);
      const during = await begin(under, key);
      for (let i = 1; i < 64; i += 1)
        expect(await end(under, key, { ...untagged, token: `t${i}` })).toBeNull();
      expect((await under.store.lookUp(key)).unsettled).toBeNull();
      expect(await endRead(under, key, during, { newTag: B })).toBeNull();
      expect(await read(under, key, { newTag: B })).toBe(B);
    });

    test('concurrent writes that the shop refuses keep the tag', async () => {
      const under = await create();
      const key = freshKey();
      await read(under, key);
      for (const token of ['t1', 't2']) await claim(under, key, token, null);
      for (const token of ['t1', 't2']) await end(under, key, { token, tagged: false, outcome: 'refused' });
      expect(await kindOf(under, key, 't3', [A])).toBe('granted');
    });

    test('a write with a tag waits for one without a tag; for half a second no later one is granted before it', async () => {
      const under = await create();
      const key = freshKey();
      await read(under, key);
      expect(await kindOf(under, key, 't1', null)).toBe('granted');
      expect(await claim(under, key, 't2', [A])).toMatchObject({ kind: 'busy' });
      expect(await kindOf(under, key, 't3', null)).toBe('busy');
      await end(under, key, { token: 't1', tagged: false, outcome: 'refused' });
      expect(await kindOf(under, key, 't3', null)).toBe('busy');
      expect(await kindOf(under, key, 't2', [A])).toBe('granted');
      expect(await kindOf(under, key, 't3', null)).toBe('busy');
      await end(under, key, { token: 't2' });
      expect(await kindOf(under, key, 't3', null)).toBe('granted');
      // The waiting writer gave up: others are granted after half a second.
      expect(await kindOf(under, key, 't4', [B])).toBe('busy');
      await under.advance(501);
      expect(await kindOf(under, key, 't5', null)).toBe('granted');
    });

    test('a claim without an end keeps the resource busy for one lease', async () => {
      const under = await create();
      const key = freshKey();
      await read(under, key);
      expect(await kindOf(under, key, 't1', [A])).toBe('granted');
      await under.advance(leaseMs - 100);
      expect(await kindOf(under, key, 't2', [A])).toBe('busy');
      await under.advance(100);
      expect(await kindOf(under, key, 't2', [A])).toBe('not-current');
      expect(await kindOf(under, key, 't2', null)).toBe('granted');
    });

    test('of two concurrent leases each ends at its own time', async () => {
      const under = await create();
      const key = freshKey();
      await read(under, key);
      await claim(under, key, 't1', null);
      await under.advance(leaseMs - 100);
      await claim(under, key, 't2', null);
      await under.advance(200);
      expect((await under.store.lookUp(key)).unsettled).toBe('lease');
      expect(await read(under, key)).toBeNull();
      await end(under, key, { token: 't2', tagged: false, outcome: 'refused' });
      expect((await under.store.lookUp(key)).unsettled).toBeNull();
      expect(await read(under, key, { newTag: B })).toBe(B);
    });

    test('after an anonymous change, a verified user whose claim fails has priority until their next write with a tag', async () => {
      const under = await create();
      const key = freshKey();
      const anonymous = { token: 's', isAnonymous: true, isOpen: true } as const;
      const passes = async () => (await under.store.claim(key, { ...anonymous, tags: null })).kind;
      const changes = () => end(under, key, { ...anonymous, tagged: false, newTag: null });
      const readAnew = async (newTag: string) => {
        await under.advance(1);
        expect(await read(under, key, { newTag })).toBe(newTag);
      };
      await read(under, key);
      expect(await passes()).toBe('granted');
      await changes();
      // An anonymous claim that fails gives no priority, and neither does a read that gets a tag.
      await under.store.claim(key, { token: 'x', tags: [A], isAnonymous: true });
      await readAnew(B);
      expect(await passes()).toBe('granted');
      expect(await kindOf(under, key, 't1', [A])).toBe('not-current');
      expect(await passes()).toBe('busy');
      // A write without a tag does not end the priority.
      expect(await kindOf(under, key, 't2', null)).toBe('granted');
      await end(under, key, { token: 't2', tagged: false, newTag: C });
      expect(await passes()).toBe('busy');
      expect(await kindOf(under, key, 't3', [C])).toBe('granted');
      expect(await passes()).toBe('busy');
      await end(under, key, { token: 't3', newTag: A });
      expect(await passes()).toBe('granted');
      expect(await kindOf(under, key, 't4', [B])).toBe('not-current');
      await under.advance(leaseMs / 3 + 1);
      expect(await passes()).toBe('granted');
    });

    test("the shop's tag: set by reads, set or cleared by writes; a collection's only if none is known", async () => {
      const under = await create();
      const key = freshKey();
      await read(under, key, { shopTag: 's1' });
      expect(await claim(under, key, 't1', [A])).toEqual({ kind: 'granted', shopTag: 's1' });
      await end(under, key, { shopTag: 's2' });
      await read(under, key, { shopTag: 'collection', isOfCollection: true, variant: 'c' });
      expect(await claim(under, key, 't2', [B])).toEqual({ kind: 'granted', shopTag: 's2' });
      await end(under, key, { token: 't2', newTag: C });
      await read(under, key, { shopTag: 's3', isOfCollection: true, variant: 'c' });
      expect(await claim(under, key, 't3', [C])).toEqual({ kind: 'granted', shopTag: 's3' });
    });

    describe('a guarded collection', () => {
      const create2 = async () => {
        const under = await create();
        const id = String(Math.random());
        const [all, one, two] = ['', digest(['1']), digest(['2'])].map((each) =>
          guardedKey('/c/{c}/items', [id], each),
        ) as [ResourceKey, ResourceKey, ResourceKey];
        expect([await read(under, one), await read(under, two)]).toEqual([A, A]);
        await under.advance(1);
        return { under, all, one, two };
      };
      const claimWhole = async (under: StoreUnderTest, all: ResourceKey, token = 'w') =>
        (await under.store.claim(all, { token, tags: null, isWhole: true })).kind;
      const endWhole = (under: StoreUnderTest, all: ResourceKey, more: Partial<ClaimEnd> = {}) =>
        end(under, all, { token: 'w', newTag: null, ...more });

      test.each(['unsent', 'refused'] as const)(
        'a write of the collection that is %s keeps the tag of a member',
        async (outcome) => {
          const { under, all, one } = await create2();
          expect(await claimWhole(under, all)).toBe('granted');
          await endWhole(under, all, { outcome });
          expect(await kindOf(under, one, 't', [A])).toBe('granted');
        },
      );

      test('a write of the collection excludes writes of members, and waits for them', async () => {
        const { under, all, one, two } = await create2();
        expect(await claimWhole(under, all)).toBe('granted');
        expect(await claimWhole(under, all, 'v')).toBe('busy');
        expect(await kindOf(under, one, 't1', [A])).toBe('busy');
        expect(await kindOf(under, one, 't1', [B])).toBe('not-current');
        expect(await kindOf(under, two, 't2', null)).toBe('busy');
        const open = { token: 'o', tags: null, isAnonymous: true, isOpen: true };
        expect((await under.store.claim(two, open)).kind).toBe('busy');
        await endWhole(under, all, { outcome: 'unsent' });
        expect(await kindOf(under, one, 't1', [A])).toBe('granted');
        expect(await kindOf(under, two, 't2', [A])).toBe('granted');
        expect(await claimWhole(under, all)).toBe('busy');
        // The write of the collection waits: no write of a member is granted before it.
        await end(under, one, { token: 't1' });
        expect(await kindOf(under, one, 't3', [B])).toBe('busy');
        await end(under, two, { token: 't2' });
        expect(await claimWhole(under, all)).toBe('granted');
      });

      test('a write of a member invalidates the tag of the collection, a refused one keeps it', async () => {
        const { under, all, one, two } = await create2();
        expect(await read(under, all)).toBe(A);
        expect(await kindOf(under, one, 't1', [A])).toBe('granted');
        await end(under, one, { outcome: 'refused' });
        expect(await kindOf(under, all, 't2', [A])).toBe('granted');
        await end(under, all, { token: 't2', outcome: 'unsent' });
        expect(await kindOf(under, two, 't3', null)).toBe('granted');
        await end(under, two, { token: 't3', tagged: false });
        expect(await kindOf(under, all, 't4', [A])).toBe('not-current');
        expect(await kindOf(under, one, 't5', [A])).toBe('granted');
      });
    });
  });
}
