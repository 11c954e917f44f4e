import { describe, expect, test } from 'vitest';
import { digest, guardedKey } from '../../../src/entity-tags/keys.ts';
import { noTag } from '../../../src/entity-tags/protocol.ts';
import type {
  Claim,
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

export function timesOf(more: { lease?: number; sendBy?: number } = {}): EntityTagTimes {
  const settings = { lease: leaseMs, sendBy: 2000, storeTimeout: 500, responseTimeout: 60_000, ...more };
  return entityTagTimes(settings) ?? expect.unreachable('the lease is too short');
}

const t = (letter: string) => letter.repeat(32);
const [A, B, C] = [t('a'), t('b'), t('c')] as const;

/** Tests for every tag store. `create` returns a store after its cold start. */
export function describeTagStore(name: string, create: () => Promise<StoreUnderTest>): void {
  /** The calls of a store for one key. */
  const on = ({ store, advance }: StoreUnderTest, key: ResourceKey) => {
    /** Starts a read a millisecond later: a read that starts in the microsecond of a change gets no tag. */
    const begin = async (): Promise<ReadStamp | null> => {
      await advance(1);
      return (await store.lookUp(key)).stamp;
    };
    const endReadWhole = (stamp: ReadStamp | null, more: Partial<ReadEnd> = {}) => {
      const read = { variant: 'v', fingerprint: 'f', newTag: A, shopTag: null, isOfCollection: false };
      return stamp === null ? null : store.endRead(key, { ...read, stamp, ...more });
    };
    const endRead = async (stamp: ReadStamp | null, more: Partial<ReadEnd> = {}) =>
      (await endReadWhole(stamp, more))?.tag ?? null;
    const claim = async (token: string, tags: readonly string[] | null, more: Partial<Claim> = {}) =>
      store.claim(key, { token, tags, ...more });
    return {
      ...{ begin, endRead, claim },
      read: async (more: Partial<ReadEnd> = {}) => endRead(await begin(), more),
      fingerprintOf: async (more: Partial<ReadEnd> = {}) =>
        (await endReadWhole(await begin(), more))?.fingerprint,
      kindOf: async (...wanted: Parameters<typeof claim>) => (await claim(...wanted)).kind,
      end: (more: Partial<ClaimEnd>) => {
        const applied = { token: 't1', tagged: true, outcome: 'applied', newTag: B, shopTag: null } as const;
        return store.end(key, { ...applied, ...more });
      },
      lookUp: async () => store.lookUp(key),
      advance,
    };
  };
  type OfKey = ReturnType<typeof on>;
  /** A store after its cold start, for one new key. */
  const stage = async () => on(await create(), digest([name, String(Math.random())]));

  describe(`${name}: the contract of tag stores`, () => {
    test('a first read sets the tag, the same state keeps it, another state replaces it', async () => {
      const { read } = await stage();
      expect(await read()).toBe(A);
      expect(await read({ newTag: B })).toBe(A);
      expect(await read({ newTag: B, fingerprint: 'g' })).toBe(B);
      expect(await read({ newTag: C })).toBe(C);
    });

    test('up to 32 variants have the tag of their state; a 33rd replaces the recorded ones', async () => {
      const { read } = await stage();
      for (let i = 0; i < 32; i += 1) expect(await read({ variant: `v${i}`, fingerprint: `f${i}` })).toBe(A);
      expect(await read({ variant: 'v0', fingerprint: 'f0', newTag: B })).toBe(A);
      expect(await read({ variant: 'v32' })).toBe(A);
      expect(await read({ variant: 'v0', fingerprint: 'other', newTag: B })).toBe(A);
      expect(await read({ variant: 'v32', fingerprint: 'other', newTag: B })).toBe(B);
    });

    test('a HEAD records nothing and gives the current tag', async () => {
      const { read } = await stage();
      expect(await read({ fingerprint: null })).toBeNull();
      await read();
      expect(await read({ fingerprint: null })).toBe(A);
    });

    test('a HEAD gets the recorded fingerprint of its variant, a GET its own', async () => {
      const { advance, claim, end, fingerprintOf, read } = await stage();
      const head = { fingerprint: null };
      expect(await fingerprintOf(head)).toBeUndefined();
      expect(await fingerprintOf()).toBe('f');
      expect(await fingerprintOf(head)).toBe('f');
      expect(await fingerprintOf({ ...head, variant: 'w' })).toBeNull();
      await claim('t1', [A]);
      expect(await fingerprintOf({ fingerprint: 'g' })).toBe('g');
      expect(await fingerprintOf(head)).toBe('f');
      await end({});
      await advance(1);
      expect(await read(head)).toBe(B);
      expect(await fingerprintOf(head)).toBeNull();
    });

    test('a read of ten minutes sets no tag', async () => {
      const { advance, begin, endRead } = await stage();
      const stamp = await begin();
      await advance(600_000);
      expect(await endRead(stamp)).toBeNull();
    });

    test('a claim is granted if one of its tags is current', async () => {
      const { claim, kindOf, read } = await stage();
      expect(await kindOf('t0', [A])).toBe('not-current');
      await read();
      expect(await kindOf('t0', [])).toBe('not-current');
      expect(await kindOf('t0', [B, C])).toBe('not-current');
      expect(await kindOf('t1', [B, A])).toBe('granted');
      expect(await kindOf('t2', [B])).toBe('not-current');
      expect(await claim('t2', [A])).toMatchObject({ kind: 'busy', remainingMs: expect.any(Number) });
      expect(await kindOf('t2', null)).toBe('busy');
    });

    test('a creation is granted while no tag is current, and excludes all other writes', async () => {
      const { end, kindOf } = await stage();
      const passes = () => kindOf('s', [noTag], { isAnonymous: true, isOpen: true });
      expect(await passes()).toBe('granted');
      expect(await kindOf('t1', [noTag])).toBe('granted');
      expect(await kindOf('t2', [noTag])).toBe('busy');
      expect(await kindOf('t3', null)).toBe('busy');
      expect(await passes()).toBe('busy');
      expect(await end({ token: 't1', newTag: A })).toBe(A);
      expect(await kindOf('t2', [noTag])).toBe('not-current');
      expect(await passes()).toBe('not-current');
      expect(await kindOf('t4', [A])).toBe('granted');
      await end({ token: 't4', newTag: null });
      expect(await kindOf('t5', [noTag])).toBe('granted');
      await end({ token: 't5', outcome: 'unknown' });
      expect(await kindOf('t6', [noTag])).toBe('indeterminate');
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
        for (const [tried, expected] of [
          [B, withNew],
          [A, withOld],
        ] as const) {
          const { read, claim, end, kindOf } = await stage();
          await read();
          await claim('t1', [A]);
          expect(await end({ outcome })).toBe(tag);
          expect(await kindOf('t2', [tried])).toBe(expected);
        }
      },
    );

    test('a deleted member has no tag', async () => {
      const { claim, end, lookUp, read } = await stage();
      await read();
      await claim('t1', [A]);
      expect(await end({ newTag: null })).toBeNull();
      expect((await lookUp()).tag).toBeNull();
    });

    test('a read during a lease gets the old tag and records nothing', async () => {
      const { claim, end, lookUp, read } = await stage();
      await read();
      await claim('t1', [A]);
      expect(await read({ fingerprint: 'g', newTag: C })).toBe(A);
      expect((await lookUp()).unsettled).toBe('lease');
      await end({ outcome: 'refused' });
      expect(await read({ newTag: C })).toBe(A);
    });

    test('a first read during a lease sets the tag; it stays if the write is refused', async () => {
      for (const outcome of ['refused', 'applied'] as const) {
        const { claim, end, kindOf, read } = await stage();
        await claim('t1', null);
        expect(await read()).toBe(A);
        expect(await read({ fingerprint: 'g', newTag: C })).toBe(A);
        expect(await kindOf('t2', [A])).toBe('busy');
        expect(await end({ tagged: false, outcome })).toBe(outcome === 'applied' ? B : null);
        expect(await kindOf('t2', [A])).toBe(outcome === 'applied' ? 'not-current' : 'granted');
      }
    });

    test('a late end keeps the tag after refused and unsent, and drops it after invalidated', async () => {
      const { end, read } = await stage();
      await read();
      expect(await end({ token: 'gone', outcome: 'refused' })).toBeNull();
      expect(await end({ token: 'gone', outcome: 'unsent' })).toBeNull();
      expect(await read({ newTag: B })).toBe(A);
      expect(await end({ token: 'gone', outcome: 'invalidated' })).toBeNull();
      expect(await read({ newTag: B })).toBe(B);
    });

    test('after an unknown write without a tag another one is granted, and leaves no tag', async () => {
      const { advance, claim, end, kindOf, read } = await stage();
      await claim('t1', null);
      await end({ outcome: 'unknown', tagged: false });
      expect(await kindOf('t2', null)).toBe('granted');
      expect(await end({ token: 't2', tagged: false })).toBeNull();
      expect(await read()).toBeNull();
      await advance(leaseMs + 1);
      expect(await read()).toBe(A);
    });

    test('64 writes without a tag run at a time, a 65th is busy; the tag is gone after all have ended', async () => {
      const { advance, begin, claim, end, endRead, kindOf, lookUp, read } = await stage();
      await read();
      for (let i = 0; i < 64; i += 1) expect(await kindOf(`t${i}`, null)).toBe('granted');
      expect(await claim('one more', null)).toMatchObject({ kind: 'busy' });
      const untagged = { tagged: false, newTag: C };
      expect(await end({ ...untagged, token: 't0', outcome: 'refused' })).toBeNull();
      expect(await read({ newTag: B })).toBe(A);
      await advance(1);
      const during = await begin();
      for (let i = 1; i < 64; i += 1) expect(await end({ ...untagged, token: `t${i}` })).toBeNull();
      expect((await lookUp()).unsettled).toBeNull();
      expect(await endRead(during, { newTag: B })).toBeNull();
      expect(await read({ newTag: B })).toBe(B);
    });

    test('concurrent writes that the shop refuses keep the tag', async () => {
      const { claim, end, kindOf, read } = await stage();
      await read();
      for (const token of ['t1', 't2']) await claim(token, null);
      for (const token of ['t1', 't2']) await end({ token, tagged: false, outcome: 'refused' });
      expect(await kindOf('t3', [A])).toBe('granted');
    });

    test('a write with a tag waits for a write without one; for half a second no later write is granted before it', async () => {
      const { advance, claim, end, kindOf, read } = await stage();
      await read();
      expect(await kindOf('t1', null)).toBe('granted');
      expect(await claim('t2', [A])).toMatchObject({ kind: 'busy' });
      expect(await kindOf('t3', null)).toBe('busy');
      await end({ token: 't1', tagged: false, outcome: 'refused' });
      expect(await kindOf('t3', null)).toBe('busy');
      expect(await kindOf('t2', [A])).toBe('granted');
      expect(await kindOf('t3', null)).toBe('busy');
      await end({ token: 't2' });
      expect(await kindOf('t3', null)).toBe('granted');
      // The waiting writer gave up: others are granted after half a second.
      expect(await kindOf('t4', [B])).toBe('busy');
      await advance(501);
      expect(await kindOf('t5', null)).toBe('granted');
    });

    test('a claim without an end keeps the resource busy for one lease', async () => {
      const { advance, kindOf, read } = await stage();
      await read();
      expect(await kindOf('t1', [A])).toBe('granted');
      await advance(leaseMs - 1);
      expect(await kindOf('t2', [A])).toBe('busy');
      await advance(1);
      expect(await kindOf('t2', [A])).toBe('not-current');
      expect(await kindOf('t2', null)).toBe('granted');
    });

    test('of two concurrent leases each ends at its own time', async () => {
      const { advance, claim, end, lookUp, read } = await stage();
      await read();
      await claim('t1', null);
      await advance(leaseMs - 100);
      await claim('t2', null);
      await advance(200);
      expect((await lookUp()).unsettled).toBe('lease');
      expect(await read({ newTag: B })).toBe(B);
      await end({ token: 't2', tagged: false, outcome: 'refused' });
      expect((await lookUp()).unsettled).toBeNull();
    });

    test('after an anonymous change, a verified user whose claim fails has priority until their next write with a tag', async () => {
      const { advance, claim, end, kindOf, read } = await stage();
      const anonymous = { isAnonymous: true, isOpen: true } as const;
      const passes = () => kindOf('s', null, anonymous);
      const changes = () => end({ ...anonymous, token: 's', tagged: false, newTag: null });
      const readAnew = async (newTag: string) => {
        await advance(1);
        expect(await read({ newTag })).toBe(newTag);
      };
      await read();
      expect(await passes()).toBe('granted');
      await changes();
      // An anonymous claim that fails gives no priority, and neither does a read that gets a tag.
      await claim('x', [A], { isAnonymous: true });
      await readAnew(B);
      expect(await passes()).toBe('granted');
      expect(await kindOf('t1', [A])).toBe('not-current');
      expect(await passes()).toBe('busy');
      // A write without a tag does not end the priority.
      expect(await kindOf('t2', null)).toBe('granted');
      await end({ token: 't2', tagged: false, newTag: C });
      expect(await passes()).toBe('busy');
      expect(await kindOf('t3', [C])).toBe('granted');
      expect(await passes()).toBe('busy');
      await end({ token: 't3', newTag: A });
      expect(await passes()).toBe('granted');
      expect(await kindOf('t4', [B])).toBe('not-current');
      await advance(leaseMs / 3 + 1);
      expect(await passes()).toBe('granted');
    });

    test("the shop's tag is set by reads, of a collection only if none is known, and set or cleared by writes", async () => {
      const { claim, end, read } = await stage();
      await read({ shopTag: 's1' });
      expect(await claim('t1', [A])).toEqual({ kind: 'granted', shopTag: 's1' });
      await end({ shopTag: 's2' });
      await read({ shopTag: 'collection', isOfCollection: true, variant: 'c' });
      expect(await claim('t2', [B])).toEqual({ kind: 'granted', shopTag: 's2' });
      await end({ token: 't2', newTag: C });
      await read({ shopTag: 's3', isOfCollection: true, variant: 'c' });
      expect(await claim('t3', [C])).toEqual({ kind: 'granted', shopTag: 's3' });
    });

    describe('a guarded collection', () => {
      const create2 = async () => {
        const under = await create();
        const id = String(Math.random());
        const [all, one, two] = ['', digest(['1']), digest(['2'])].map((each) =>
          on(under, guardedKey('/c/{c}/items', [id], each)),
        ) as [OfKey, OfKey, OfKey];
        expect([await one.read(), await two.read()]).toEqual([A, A]);
        await under.advance(1);
        return { all, one, two };
      };
      const claimWhole = (all: OfKey, token = 'w') => all.kindOf(token, null, { isWhole: true });
      const endWhole = (all: OfKey, more: Partial<ClaimEnd> = {}) =>
        all.end({ token: 'w', newTag: null, ...more });

      test.each(['unsent', 'refused'] as const)(
        'a write of the collection that is %s keeps the tag of a member',
        async (outcome) => {
          const { all, one } = await create2();
          expect(await claimWhole(all)).toBe('granted');
          await endWhole(all, { outcome });
          expect(await one.kindOf('t', [A])).toBe('granted');
        },
      );

      test('a write of the collection excludes writes of members, and waits for them', async () => {
        const { all, one, two } = await create2();
        expect(await claimWhole(all)).toBe('granted');
        expect(await claimWhole(all, 'v')).toBe('busy');
        expect(await one.kindOf('t1', [A])).toBe('busy');
        expect(await one.kindOf('t1', [B])).toBe('not-current');
        expect(await two.kindOf('t2', null)).toBe('busy');
        expect(await two.kindOf('o', null, { isAnonymous: true, isOpen: true })).toBe('busy');
        await endWhole(all, { outcome: 'unsent' });
        expect(await one.kindOf('t1', [A])).toBe('granted');
        expect(await two.kindOf('t2', [A])).toBe('granted');
        expect(await claimWhole(all)).toBe('busy');
        // The write of the collection waits: no write of a member is granted before it.
        await one.end({ token: 't1' });
        expect(await one.kindOf('t3', [B])).toBe('busy');
        await two.end({ token: 't2' });
        expect(await claimWhole(all)).toBe('granted');
      });

      test('a write of a member invalidates the tag of the collection, a refused one keeps it', async () => {
        const { all, one, two } = await create2();
        expect(await all.read()).toBe(A);
        expect(await one.kindOf('t1', [A])).toBe('granted');
        await one.end({ outcome: 'refused' });
        expect(await all.kindOf('t2', [A])).toBe('granted');
        await all.end({ token: 't2', outcome: 'unsent' });
        expect(await two.kindOf('t3', null)).toBe('granted');
        await two.end({ token: 't3', tagged: false });
        expect(await all.kindOf('t4', [A])).toBe('not-current');
        expect(await one.kindOf('t5', [A])).toBe('granted');
      });
    });
  });
}
