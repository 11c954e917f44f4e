import fc from 'fast-check';
import { expect, test } from 'vitest';
import { digest, guardedKey } from '../../../src/entity-tags/keys.ts';
import { buildTagScripts } from '../../../src/entity-tags/lua.ts';
import type { TagRecord } from '../../../src/entity-tags/protocol.ts';
import * as steps from '../../../src/entity-tags/protocol.ts';
import { RedisTagStore } from '../../../src/entity-tags/redis-store.ts';
import type { Claim, ClaimEnd, ReadEnd, ReadStamp } from '../../../src/entity-tags/tag-store.ts';
import { swap } from './clocked-scripts.ts';
import { useRedis } from './connected-redis.ts';

/**
 * The scripts give the answers of `protocol.ts`, to the microsecond. The model plays what clients do; here any call may come
 * at any time, so that each condition is tested from both sides.
 */
const redis = useRedis();

/** In microseconds. Long, so that no record expires by the real clock of Redis. */
const [lease, coldStart, longestRead] = [15_000_000, 15_000_000, 30_000_000] as const;
const times = { lease, coldStart, longestRead };
const storeTimes = {
  leaseMs: lease / 1000,
  coldStartMs: coldStart / 1000,
  longestReadMs: longestRead / 1000,
  recordExpiryMs: 86_400_000,
  anonymousExpiryMs: 3_600_000,
};
/** Priority of a waiting writer, priority of a verified user, lease, longest read, and one microsecond. */
const spans = [lease / 30, lease / 3, lease, longestRead, 1, 1, 1];
const keys = {
  plain: digest(['one']),
  member: guardedKey('/c', [], digest(['one'])),
  whole: guardedKey('/c', []),
} as const;
const tags = ['a', 'b', 'c'].map((letter) => letter.repeat(32));

/** A Redis store whose clock a test moves, and the pure steps with the same calls. */
class Pair {
  nowMicros = 1_000_000_000_000;
  readonly store: RedisTagStore;
  readonly stamps: ReadStamp[] = [];
  tokens = 0;
  /** The resource of the calls: a plain member, a guarded member, or its collection. */
  of: keyof typeof keys = 'plain';
  readonly #clockKey: string;
  readonly #since = this.nowMicros;
  readonly #records: Record<keyof typeof keys, TagRecord | null> = { plain: null, member: null, whole: null };

  constructor(keyPrefix: string) {
    this.#clockKey = `${keyPrefix}-clock`;
    const clock = `return tonumber(redis.call('GET', '${this.#clockKey}'))`;
    const id = "return string.match(redis.call('INFO', 'replication'), 'master_replid:(%w+)')";
    const scripts = buildTagScripts((lua) =>
      swap(swap(lua, { search: 'return time[1] * 1000000 + time[2]', replace: clock }), {
        search: id,
        replace: "return 'x'",
      }),
    );
    this.store = new RedisTagStore({ redis: redis(), times: storeTimes, keyPrefix, scripts });
  }

  async pass(micros: number): Promise<void> {
    this.nowMicros += micros;
    await redis().command('SET', this.#clockKey, this.nowMicros);
  }

  get key() {
    return keys[this.of];
  }

  #open(of: keyof typeof keys): steps.Opened {
    const moment = { now: this.nowMicros, epoch: `x/6:${this.#since}`, since: this.#since };
    return steps.open(this.#records[of], moment, times);
  }

  open(): steps.Opened {
    const own = this.#open(this.of);
    return this.of === 'member' ? steps.ofCollection(own, this.#open('whole')) : own;
  }

  endRead(read: ReadEnd) {
    const { record, answer } = steps.endRead(this.open(), read, times);
    this.#records[this.of] = record;
    return answer;
  }

  claim(wanted: Claim) {
    return this.of === 'member'
      ? this.#keep(steps.claimMember(this.open(), this.#open('whole'), wanted, times))
      : this.#keep(steps.claim(this.open(), wanted, times));
  }

  end(write: ClaimEnd) {
    return this.of === 'member'
      ? this.#keep(steps.endMember(this.open(), this.#open('whole'), write, times))
      : this.#keep(steps.end(this.open(), write, times));
  }

  #keep<T>({ record, answer, collection }: steps.Step<T> & Partial<steps.MemberStep<T>>): T {
    this.#records[this.of] = record;
    if (collection !== undefined) this.#records.whole = collection;
    return answer;
  }

  /** One of the last claims. */
  token(ago: number): string {
    return `t${Math.max(0, this.tokens - ago)}`;
  }
}

type Call = (pair: Pair) => Promise<void>;
const one = <T>(all: readonly T[]) => fc.constantFrom(...all);
const outcomes = ['unsent', 'refused', 'applied', 'applied', 'invalidated', 'unknown'] as const;
const flag = one([undefined, true] as const);

const lookUp: Call = async (pair) => {
  const expected = steps.lookUp(pair.open());
  expect(await pair.store.lookUp(pair.key)).toEqual(expected);
  if (expected.stamp !== null) pair.stamps.push(expected.stamp);
};

const endRead = fc
  .record({
    ago: one([1, 1, 2, 3]),
    variant: one(['v', 'v', 'w']),
    fingerprint: one(['f', 'f', 'g', null]),
    newTag: one(tags),
    shopTag: one([null, 's', 'z']),
    isOfCollection: fc.boolean(),
    isAnonymous: flag,
  })
  .map(
    ({ ago, isAnonymous, ...rest }): Call =>
      async (pair) => {
        const stamp = pair.stamps.at(-ago);
        if (stamp === undefined) return;
        const read = { ...rest, stamp, ...(isAnonymous && { isAnonymous }) };
        const expected = pair.endRead(read);
        expect(await pair.store.endRead(pair.key, read)).toEqual(expected);
      },
  );

const wantedClaim = fc.record({
  named: one([null, null, [tags[0]], [tags[1]], tags] as (string[] | null)[]),
  isAnonymous: flag,
  isOpen: flag,
  isWhole: flag,
});

/** Claims of one tick of the event loop are one script, with the answers of claims one after the other. */
const claim = fc.array(wantedClaim, { minLength: 1, maxLength: 4 }).map(
  (all): Call =>
    async (pair) => {
      const answers = all.map(({ named, isAnonymous, isOpen, isWhole }) => {
        pair.tokens += 1;
        const isOpenClaim = isOpen === true && named === null;
        const wanted = {
          ...{ token: pair.token(0), tags: named },
          ...(isAnonymous && { isAnonymous }),
          ...(isOpenClaim && { isOpen: true }),
          ...(isWhole && !isOpenClaim && pair.of === 'whole' && { isWhole }),
        };
        const expected = pair.claim(wanted);
        return { expected, given: pair.store.claim(pair.key, wanted) };
      });
      for (const { expected, given } of answers) expect(await given).toEqual(expected);
    },
);

const end = fc
  .record({
    ago: one([0, 0, 1, 2]),
    tagged: fc.boolean(),
    outcome: one(outcomes),
    newTag: one([null, ...tags]),
    shopTag: one([null, 's']),
    isOpen: flag,
  })
  .map(
    ({ ago, isOpen, ...rest }): Call =>
      async (pair) => {
        const isOpenEnd = isOpen === true && !rest.tagged;
        const write: ClaimEnd = { ...rest, token: pair.token(ago), ...(isOpenEnd && { isOpen: true }) };
        const expected = pair.end(write);
        expect(await pair.store.end(pair.key, write)).toBe(expected);
      },
  );

const fallTo = one(['member', 'member', 'whole'] as const).map(
  (of): Call =>
    async (pair) => {
      if (pair.of !== 'plain') pair.of = of;
    },
);

const pass = one(spans).map(
  (micros): Call =>
    (pair) =>
      pair.pass(micros),
);

/** Several calls in a row: a single random call would rarely find the state that it needs. */
const inARow = (...calls: readonly fc.Arbitrary<Call>[]) =>
  fc.tuple(...calls).map(
    (all): Call =>
      async (pair) => {
        for (const call of all) await call(pair);
      },
  );

test('random calls: every script answers as the step of the same name does', async () => {
  let runs = 0;
  const call = fc.oneof(
    { arbitrary: inARow(fc.constant(lookUp), endRead, fc.constant(lookUp)), weight: 3 },
    ...[fc.constant(lookUp), endRead, claim, end, pass, fallTo].map((arbitrary) => ({
      arbitrary,
      weight: 2,
    })),
    { arbitrary: inARow(pass, fc.constant(lookUp)), weight: 1 },
  );
  const sequence = fc.array(call, { minLength: 6, maxLength: 40 });
  await fc.assert(
    fc.asyncProperty(sequence, fc.boolean(), fc.boolean(), async (calls, isCold, isGuarded) => {
      runs += 1;
      const pair = new Pair(`twin-${runs}`);
      pair.of = isGuarded ? 'member' : 'plain';
      await pair.pass(0);
      await pair.store.warmUp();
      // One microsecond before or after the end of the cold start.
      await pair.pass(isCold ? coldStart - 1 : coldStart + 1);
      for (const each of calls) await each(pair);
      await lookUp(pair);
      await pair.pass(1);
      const [stamp] = pair.stamps.slice(-1);
      // A HEAD returns the recorded fingerprint.
      if (stamp !== undefined)
        for (const variant of ['v', 'w']) await reads(pair, stamp, { variant, fingerprint: null });
    }),
    { numRuns: 150, endOnFailure: true },
  );
});

/** For cases that random calls seldom reach. The answers must be those of the steps and those that the test names. */
async function start(): Promise<Pair> {
  const pair = new Pair(`exact-${Math.random()}`);
  await pair.pass(0);
  await pair.store.warmUp();
  await pair.pass(coldStart + 1);
  return pair;
}
const ownWait = lease / 3;

async function looks(pair: Pair): Promise<ReadStamp> {
  await pair.pass(1);
  const { stamp } = await pair.store.lookUp(pair.key);
  expect(stamp).toEqual(steps.lookUp(pair.open()).stamp);
  return stamp as ReadStamp;
}

async function reads(pair: Pair, stamp: ReadStamp, more: object = {}) {
  const read = { ...{ variant: 'v', fingerprint: 'f', newTag: tags[0] as string, shopTag: null }, ...more };
  const whole = { ...read, stamp, isOfCollection: false };
  const expected = pair.endRead(whole);
  expect(await pair.store.endRead(pair.key, whole)).toEqual(expected);
  return expected;
}

async function claims(pair: Pair, token: string, wanted: { tags?: string[]; isOpen?: true } = {}) {
  const whole = { token, tags: null, ...wanted };
  const expected = pair.claim(whole);
  expect(await pair.store.claim(pair.key, whole)).toEqual(expected);
  return 'remainingMs' in expected ? [expected.kind, expected.remainingMs * 1000] : expected.kind;
}

async function ends(pair: Pair, token: string, more: Partial<ClaimEnd> = {}) {
  const write = { token, tagged: false, outcome: 'applied', newTag: null, shopTag: null, ...more } as const;
  const expected = pair.end(write);
  expect(await pair.store.end(pair.key, write)).toBe(expected);
  return expected;
}

test('the priority of a verified user lasts a third of a lease, and so does the pause after it', async () => {
  const pair = await start();
  const stamp = await looks(pair);
  await ends(pair, 'anonymous', { isOpen: true });
  // An anonymous read gets no priority.
  expect(await reads(pair, stamp, { isAnonymous: true })).toBeNull();
  expect(await claims(pair, 'a', { isOpen: true })).toBe('granted');
  expect(await reads(pair, stamp)).toBeNull();
  await pair.pass(ownWait - 1);
  expect(await reads(pair, stamp)).toBeNull();
  expect(await claims(pair, 'b', { isOpen: true })).toEqual(['busy', 1]);
  await pair.pass(1);
  expect(await claims(pair, 'c', { isOpen: true })).toBe('granted');
  await pair.pass(ownWait - 1);
  expect(await reads(pair, stamp)).toBeNull();
  expect(await claims(pair, 'd', { isOpen: true })).toBe('granted');
  await pair.pass(1);
  expect(await reads(pair, stamp)).toBeNull();
  expect(await claims(pair, 'e', { isOpen: true })).toEqual(['busy', ownWait]);
});

test('after the clock was set back an old tag of a guarded member stays invalid', async () => {
  for (const looksBetween of [true, false]) {
    const pair = await start();
    pair.of = 'member';
    const second = 1_000_000;
    const isOld = async () =>
      expect(await pair.store.claim(pair.key, { token: 'old', tags })).toMatchObject({ kind: 'not-current' });
    await pair.pass(30 * second);
    await claims(pair, 'child');
    await ends(pair, 'child');
    expect(await reads(pair, await looks(pair))).not.toBeNull();
    await pair.pass(5 * second);
    const write = { token: 'w', tags: null };
    await pair.store.claim(keys.whole, { ...write, isWhole: true });
    const ended = { ...write, tagged: true, outcome: 'applied', newTag: null, shopTag: null } as const;
    await pair.store.end(keys.whole, ended);
    // Back to before these writes, but not so far that the store counts as new.
    await pair.pass(-20 * second);
    await pair.store.claim(keys.whole, { token: 'x', tags: ['none'] });
    if (looksBetween) await isOld();
    for (const seconds of [16, 10]) {
      await pair.pass(seconds * second);
      await isOld();
    }
  }
});
