import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Redis } from '../../src/redis/redis.ts';
import { buildTokenScripts } from '../../src/refresh-tokens/lua.ts';
import * as steps from '../../src/refresh-tokens/protocol.ts';
import { RedisTokenStore } from '../../src/refresh-tokens/redis-store.ts';
import type {
  BookLimits,
  FamilyId,
  SubjectDigest,
  TokenDigest,
  TokenEntry,
  TokenStoreOptions,
} from '../../src/refresh-tokens/token-store.ts';
import { type RedisProcess, startRedisProcess } from '../harness/redis-server.ts';
import { connect } from './stores.ts';

/** The scripts say what `protocol.ts` says, to the millisecond; and nothing in Redis lives longer than it is needed. */
let server: RedisProcess;
let redis: Redis;
beforeAll(async () => {
  server = await startRedisProcess();
  redis = await connect(`redis://127.0.0.1:${server.port}`);
});
afterAll(async () => {
  await redis?.close();
  await server?.close();
});

/** Of one bucket, so that they share a book. */
const tokens = [1, 2, 3].map((end) => String(end).padStart(32, '0') as TokenDigest);
const subjects = ['a', 'b'].map((letter) => letter.repeat(32) as SubjectDigest);
const families = ['f', 'g'].map((letter) => letter.repeat(16) as FamilyId);
const ops = ['o', 'p'];
const second = 1000;
const day = 86_400_000;

/** A store whose clock stands still until a test moves it. */
function frozenStore(keyPrefix: string, limits: BookLimits) {
  const clockKey = `${keyPrefix}-clock`;
  const readClock = "local time = redis.call('TIME')";
  const scripts = buildTokenScripts((lua) =>
    lua.replace(readClock, `local at = redis.call('GET', '${clockKey}') local time = { at, 0 }`),
  );
  const options = { lifetimeMs: 2 * day, retentionMs: 'keep', book: limits, keyPrefix, scripts } as const;
  const setClock = (ms: number) => redis.command('SET', clockKey, String(ms / second));
  return { store: new RedisTokenStore({ redis, ...options }), setClock };
}

/** What `protocol.ts` makes of the same calls. */
class Steps {
  nowMs: number;
  readonly #limits: BookLimits;
  readonly #records = new Map<TokenDigest, steps.TokenRecord>();
  readonly #generations = new Map<SubjectDigest, { settled: number; pending: Map<string, number> }>();
  #book = steps.blankBook;

  constructor(nowMs: number, limits: BookLimits) {
    this.nowMs = nowMs;
    this.#limits = limits;
  }

  step<T>(
    token: TokenDigest,
    run: (record: steps.TokenRecord) => { record: steps.TokenRecord; answer: T },
  ): T {
    const { record, answer } = run(this.recordOf(token));
    this.#records.set(token, record);
    return answer;
  }

  recordOf(token: TokenDigest): steps.TokenRecord {
    return this.#records.get(token) ?? steps.blankRecord;
  }

  admits(who: SubjectDigest | null): boolean {
    const { book, isAdmitted } = steps.admit(this.#book, who, this.#limits, day, this.nowMs);
    this.#book = book;
    return isAdmitted;
  }

  generationsOf(subject: SubjectDigest) {
    const known = this.#generations.get(subject) ?? { settled: 0, pending: new Map() };
    this.#generations.set(subject, known);
    return known;
  }

  generationOf(subject: SubjectDigest): number {
    const { settled, pending } = this.generationsOf(subject);
    return Math.max(settled, ...pending.values());
  }
}

interface Pair {
  readonly store: RedisTokenStore;
  readonly twin: Steps;
  readonly setClock: (ms: number) => unknown;
}
/** Puts one call to both, and compares what they say. */
type Call = (pair: Pair) => Promise<void>;

const one = <T>(all: readonly T[]) => fc.constantFrom(...all);
const sorted = <T>(answer: T): T =>
  typeof answer === 'object' && answer !== null && 'revokedBy' in answer
    ? { ...answer, revokedBy: (answer.revokedBy as readonly string[]).toSorted() }
    : answer;
/** So few of them that one is often over to the millisecond when another begins. */
const spans = [60 * second, 120 * second, day, 2 * day];

const calls: readonly fc.Arbitrary<Call>[] = [
  fc.tuple(one(tokens), one(ops), one(spans)).map(
    ([token, op, holdMs]): Call =>
      async ({ store, twin }) => {
        const expected = twin.step(token, (record) => steps.claim(record, op, holdMs, twin.nowMs));
        expect(sorted(await store.claim(token, op, holdMs))).toEqual(sorted(expected));
      },
  ),
  fc.tuple(one(tokens), one(ops), one(spans)).map(
    ([token, op, holdMs]): Call =>
      async ({ store, twin }) => {
        const expected = twin.step(token, (record) => steps.confirm(record, op, holdMs, twin.nowMs));
        expect(await store.confirm(token, op, holdMs)).toBe(expected);
      },
  ),
  fc.tuple(one(tokens), one(ops)).map(
    ([token, op]): Call =>
      async ({ store, twin }) => {
        twin.step(token, (record) => ({ record: steps.release(record, op), answer: undefined }));
        await store.release(token, op);
      },
  ),
  fc.tuple(one(tokens), one(ops)).map(
    ([token, op]): Call =>
      async ({ store, twin }) => {
        twin.step(token, (record) => ({ record: steps.markIndeterminate(record, op), answer: undefined }));
        await store.markIndeterminate(token, op);
      },
  ),
  fc
    .record({
      token: one(tokens),
      owner: one([null, ...subjects]),
      family: one(families),
      isProven: fc.boolean(),
      // Its key goes by Redis' own clock as well, which only ever makes it shorter: the spans are long enough.
      answer: one([null, { sealed: 's', leewayMs: 60 * second }, { sealed: 't', leewayMs: day }]),
    })
    .map(
      ({ token, ...use }): Call =>
        async ({ store, twin }) => {
          const expected = twin.step(token, (record) =>
            steps.markUsed(record, use, 2 * day, twin.nowMs, () => twin.admits(null)),
          );
          expect(await store.markUsed(token, use)).toBe(expected);
        },
    ),
  fc
    .record({
      token: one(tokens),
      subject: one([null, ...subjects]),
      generation: one([0, 7]),
      family: one(families),
      lifetimeMs: one(spans),
    })
    .map(
      ({ token, ...issued }): Call =>
        async ({ store, twin }) => {
          twin.step(token, (record) => ({
            record: steps.recordIssued(record, issued, twin.nowMs),
            answer: undefined,
          }));
          await store.record(token, issued);
          if (issued.subject !== null) {
            const generation = twin.generationOf(issued.subject);
            const standing = { generation, nowMicros: twin.nowMs * 1000 };
            expect(await store.addToSubject(issued.subject, token, issued.lifetimeMs)).toEqual(standing);
          }
        },
    ),
  fc.tuple(one(tokens), one(subjects), one(ops)).map(
    ([token, by, op]): Call =>
      async ({ store, twin }) => {
        const expected = twin.step(token, (record) =>
          steps.noteRevocation(record, by, op, twin.nowMs, () => twin.admits(by)),
        );
        expect(await store.noteRevocation(token, by, op)).toBe(expected);
      },
  ),
  fc.tuple(one(tokens), one(subjects), one(ops), fc.boolean()).map(
    ([token, by, op, stands]): Call =>
      async ({ store, twin }) => {
        twin.step(token, (record) => ({
          record: steps.settleRevocation(record, by, op, stands, twin.nowMs),
          answer: undefined,
        }));
        await store.settleRevocation(token, by, op, stands);
      },
  ),
  fc.tuple(one(subjects), one(ops)).map(
    ([subject, op]): Call =>
      async ({ store, twin }) => {
        const noted = Math.max(twin.generationOf(subject) + 1, twin.nowMs * 1000);
        twin.generationsOf(subject).pending.set(op, noted);
        expect(await store.noteRevocationOfAll(subject, op)).toBe(noted);
      },
  ),
  fc.tuple(one(subjects), one(ops), one([3, 5_000_000_000_000_000]), fc.boolean()).map(
    ([subject, op, noted, stands]): Call =>
      async ({ store, twin }) => {
        const generations = twin.generationsOf(subject);
        generations.pending.delete(op);
        if (stands) generations.settled = Math.max(generations.settled, noted);
        await store.settleRevocationOfAll(subject, op, noted, stands);
        expect(await store.generationOf(subject)).toBe(twin.generationOf(subject));
      },
  ),
  one([second, ...spans]).map(
    (ms): Call =>
      async ({ twin, setClock }) => {
        twin.nowMs += ms;
        await setClock(twin.nowMs);
      },
  ),
];

/** What `list` says of a token, by the steps: without the generations, which are compared by themselves. */
function entryOf(twin: Steps, token: TokenDigest): Partial<TokenEntry> | undefined {
  const record = twin.recordOf(token);
  if (record.life === null) return undefined;
  const { subject, family, life, usedAtMs } = record;
  return { token, subject, family, ...life, usedAtMs, revokedAtMs: steps.revokedAt(record) };
}

test('every script answers as the step of the same name does', async () => {
  let runs = 0;
  const sequence = fc.array(fc.oneof(...calls), { minLength: 4, maxLength: 40 });
  await fc.assert(
    fc.asyncProperty(sequence, one([1, 2]), one([1, 3]), async (sent, perSubject, inAll) => {
      runs += 1;
      const limits = { perSubject, inAll };
      const { store, setClock } = frozenStore(`twin-${runs}`, limits);
      // Behind the real clock by more than any sequence takes: what is purged is bounded by that one.
      const twin = new Steps((Math.floor(Date.now() / second) - 200 * 86_400) * second, limits);
      await setClock(twin.nowMs);
      for (const call of sent) await call({ store, twin, setClock });
      const listed: Partial<TokenEntry>[] = [];
      for await (const { state, ...entry } of store.list()) {
        const record = twin.recordOf(entry.token);
        const own = steps.stateOf(record, twin.nowMs);
        const isOver = record.subject !== null && record.generation < twin.generationOf(record.subject);
        expect(state).toBe(isOver && own !== 'used' ? 'revoked' : own);
        listed.push(entry);
      }
      const expected = tokens.flatMap((token) => entryOf(twin, token) ?? []);
      const byToken = (a: Partial<TokenEntry>, b: Partial<TokenEntry>) =>
        (a.token ?? '') < (b.token ?? '') ? -1 : 1;
      expect(listed.toSorted(byToken)).toEqual(expected.toSorted(byToken));
      const over = expected.filter(({ expiresAtMs = 0 }) => expiresAtMs <= twin.nowMs);
      expect(await store.purgeExpired()).toBe(over.length);
      expect(await store.purgeExpired()).toBe(0);
    }),
    { numRuns: 250, endOnFailure: true },
  );
});

describe('to the millisecond', () => {
  const [token, other] = tokens as [TokenDigest, TokenDigest];
  const [mine, theirs] = subjects as [SubjectDigest, SubjectDigest];
  const [family] = families as [FamilyId];
  const use = { owner: null, family, isProven: true, answer: { sealed: 's', leewayMs: day } };
  const issued = { subject: mine, generation: 0, family, lifetimeMs: day };
  let opened = 0;
  const start = async () => {
    opened += 1;
    const { store, setClock } = frozenStore(`exact-${opened}`, { perSubject: 1, inAll: 3 });
    const startedMs = 1_600_000_000_000;
    let nowMs = startedMs;
    await setClock(nowMs);
    const pass = async (ms: number) => {
      nowMs += ms;
      await setClock(nowMs);
    };
    const entries = async (subject?: SubjectDigest) => {
      const all: TokenEntry[] = [];
      for await (const entry of store.list(subject)) all.push(entry);
      return all;
    };
    return { store, pass, entries, startedMs };
  };

  test('a page of the book ends', async () => {
    const { store, pass } = await start();
    expect(await store.noteRevocation(token, mine, 'r')).toBe('noted');
    await pass(day - second);
    expect(await store.noteRevocation(other, mine, 's')).toBe('full');
    await pass(second);
    expect(await store.noteRevocation(other, mine, 's')).toBe('noted');
  });

  test('the leeway ends', async () => {
    const { store, pass } = await start();
    await store.markUsed(token, use);
    await pass(day - second);
    expect(await store.claim(token, 'o', second)).toMatchObject({ sealed: 's', usedForMs: day - second });
    await pass(second);
    expect(await store.claim(token, 'o', second)).toMatchObject({ sealed: null, usedForMs: day });
  });

  test('who has noted a token that turns out to be another one’s is not named', async () => {
    const { store } = await start();
    await store.noteRevocation(token, theirs, 'r');
    await store.settleRevocation(token, theirs, 'r', true);
    expect(await store.claim(token, 'o', day)).toMatchObject({ kind: 'granted', revokedBy: [theirs] });
    await store.release(token, 'o');
    await store.record(token, issued);
    expect(await store.claim(token, 'o', day)).toMatchObject({ kind: 'granted', revokedBy: [] });
  });

  test('the first of several revocations counts', async () => {
    const { store, pass, entries, startedMs } = await start();
    await store.record(token, issued);
    for (const op of ['r', 's']) {
      await store.noteRevocation(token, mine, op);
      await store.settleRevocation(token, mine, op, true);
      await pass(second);
    }
    expect(await entries()).toMatchObject([{ state: 'revoked', revokedAtMs: startedMs }]);
  });

  test('what was put into an index and never recorded is nothing', async () => {
    const { store, entries } = await start();
    await store.addToSubject(mine, token, day);
    await store.claim(token, 'o', day);
    expect([await entries(mine), await store.purgeExpired(mine)]).toEqual([[], 0]);
  });

  test('what is purged leaves every index', async () => {
    const { store, pass } = await start();
    await store.addToSubject(mine, token, day);
    await store.record(token, issued);
    await pass(day);
    expect(await store.purgeExpired()).toBe(1);
    expect(await redis.command('KEYS', `exact-${opened}:*`)).toEqual([]);
  });
});

describe('how long what is written lives', () => {
  const [token, other] = tokens as [TokenDigest, TokenDigest];
  const [subject] = subjects as [SubjectDigest];
  const [family] = families as [FamilyId];
  const use = { owner: null, family, isProven: false, answer: null };
  const issued = { subject, generation: 0, family, lifetimeMs: 60 * second };
  const lifetimeMs = 2 * day;
  let opened = 0;

  /** Seconds that are left of each key, rounded, by what it is; -1: for good. */
  async function lifetimesAfter(
    run: (store: RedisTokenStore) => Promise<unknown>,
    retentionMs: TokenStoreOptions['retentionMs'] = 60 * second,
  ): Promise<Record<string, number>> {
    opened += 1;
    const keyPrefix = `life-${opened}`;
    await run(new RedisTokenStore({ redis, lifetimeMs, retentionMs, keyPrefix }));
    const keys = (await redis.command('KEYS', `${keyPrefix}:*`)) as string[];
    const kindOf = (key: string) => /:(subject|of|answer|family|book|expiry)/.exec(key)?.[1] ?? 'token';
    const left = await Promise.all(keys.map((key) => redis.command('PTTL', key)));
    // A slow machine takes a few seconds of it.
    const rounded = left.map((ms) => (Number(ms) < 0 ? Number(ms) : Math.ceil(Number(ms) / 20_000) * 20));
    return Object.fromEntries(keys.map((key, i) => [kindOf(key), rounded[i] as number]));
  }
  const days = (count: number) => count * 86_400;

  test.each<[string, (store: RedisTokenStore) => Promise<unknown>, Record<string, number>]>([
    ['a claim of nothing', (store) => store.claim(token, 'o', 60 * second), { token: 60 }],
    [
      'a claim after a longer one',
      async (store) => {
        await store.claim(token, 'o', 120 * second);
        await store.release(token, 'o');
        await store.noteRevocation(token, subject, 'r');
        await store.claim(token, 'o', 60 * second);
        await store.confirm(token, 'o', 80 * second);
      },
      { token: days(1), book: days(1) },
    ],
    [
      'a claim that is confirmed',
      async (store) => {
        await store.claim(token, 'o', 60 * second);
        await store.confirm(token, 'o', 120 * second);
      },
      { token: 120 },
    ],
    [
      'a note about nothing',
      (store) => store.noteRevocation(token, subject, 'r'),
      { token: days(1), book: days(1) },
    ],
    [
      'a settled note about nothing that was claimed',
      async (store) => {
        await store.claim(token, 'o', 60 * second);
        await store.settleRevocation(token, subject, 'r', true);
      },
      { token: days(1) },
    ],
    ['a use that nothing proves', (store) => store.markUsed(token, use), { token: days(1), book: days(1) }],
    [
      'a use that is proven',
      (store) => store.markUsed(token, { ...use, isProven: true }),
      { token: days(2) + 60, expiry: -1 },
    ],
    [
      'an answer that is kept',
      (store) =>
        store.markUsed(token, { ...use, isProven: true, answer: { sealed: 's', leewayMs: 60 * second } }),
      { token: days(2) + 60, expiry: -1, answer: 60 },
    ],
    ['a token that was issued', (store) => store.record(token, issued), { token: 120, expiry: -1 }],
    [
      'one that was claimed, confirmed, noted and settled for longer',
      async (store) => {
        await store.record(token, { ...issued, subject: null });
        await store.claim(token, 'o', 10 * day);
        await store.confirm(token, 'o', 10 * day);
        await store.noteRevocation(token, subject, 'r');
        await store.settleRevocation(token, subject, 'r', true);
      },
      { token: 120, expiry: -1 },
    ],
    [
      'one that was issued again, for longer',
      async (store) => {
        await store.record(token, issued);
        await store.record(token, { ...issued, lifetimeMs: day });
        await store.record(token, issued);
      },
      { token: days(1) + 60, expiry: -1 },
    ],
    [
      'one that was used',
      async (store) => {
        await store.record(token, issued);
        await store.markUsed(token, use);
      },
      { token: 120, expiry: -1 },
    ],
    ['an index', (store) => store.addToSubject(subject, token, 3 * day), { of: days(3) + 60 }],
    [
      'an index to which another token comes for less',
      async (store) => {
        await store.addToSubject(subject, token, 3 * day);
        await store.addToSubject(subject, other, second);
      },
      { of: days(3) + 60 },
    ],
    ['a note about all', (store) => store.noteRevocationOfAll(subject, 'r'), { subject: days(2) + 60 }],
    [
      'a settled one about all',
      (store) => store.settleRevocationOfAll(subject, 'r', 1, true),
      { subject: days(2) + 60 },
    ],
    ['one about all that is taken back', (store) => store.settleRevocationOfAll(subject, 'r', 1, false), {}],
    [
      'a note about all that are there for longer',
      async (store) => {
        await store.addToSubject(subject, token, 3 * day);
        await store.noteRevocationOfAll(subject, 'r');
      },
      { of: days(3) + 60, subject: days(3) + 60 },
    ],
    [
      'a note about all to which a token comes for longer',
      async (store) => {
        await store.noteRevocationOfAll(subject, 'r');
        await store.addToSubject(subject, token, 3 * day);
      },
      { of: days(3) + 60, subject: days(3) + 60 },
    ],
    [
      'a note about all to which a token comes for less',
      async (store) => {
        await store.noteRevocationOfAll(subject, 'r');
        await store.addToSubject(subject, token, 20 * second);
      },
      { of: 80, subject: days(2) + 60 },
    ],
    ['a family of long tokens', (store) => store.endFamily(family, 3 * day), { family: days(3) + 60 }],
    ['a family of short ones', (store) => store.endFamily(family, second), { family: days(2) + 60 }],
    [
      'a family that ends twice',
      async (store) => {
        await store.endFamily(family, 3 * day);
        await store.endFamily(family, second);
      },
      { family: days(3) + 60 },
    ],
  ])('%s', async (_, run, lifetimes) => {
    expect(await lifetimesAfter(run)).toEqual(lifetimes);
  });

  test('for good, where everything is kept', async () => {
    const all = async (store: RedisTokenStore) => {
      await store.claim(token, 'o', 60 * second);
      await store.record(token, issued);
      await store.markUsed(token, use);
      await store.addToSubject(subject, token, second);
      await store.noteRevocationOfAll(subject, 'r');
      await store.endFamily(family, second);
    };
    const lifetimes = { token: -1, expiry: -1, of: -1, subject: -1, family: -1 };
    expect(await lifetimesAfter(all, 'keep')).toEqual(lifetimes);
  });

  test('the indexes lose what is over, and keep what is not', async () => {
    const indexesAfter = async (retentionMs: number | 'keep') => {
      opened += 1;
      const keyPrefix = `index-${opened}`;
      const store = new RedisTokenStore({ redis, lifetimeMs, retentionMs, keyPrefix });
      // Over for long, over a moment ago, not over; the last one comes when they are there.
      for (const ms of [-10 * day, -second, day]) {
        const old = String(ms + 20 * day).padStart(32, '0') as TokenDigest;
        await store.addToSubject(subject, old, ms);
      }
      await store.addToSubject(subject, token, day);
      const [index = ''] = (await redis.command('KEYS', `${keyPrefix}:*:of:*`)) as string[];
      return redis.command('ZCARD', index);
    };
    expect(await indexesAfter(day)).toBe(3);
    expect(await indexesAfter('keep')).toBe(4);
  });

  test('and so does that of all tokens', async () => {
    const store = new RedisTokenStore({ redis, lifetimeMs, retentionMs: day, keyPrefix: 'expiry' });
    for (const [i, ms] of [-10 * day, -second, day, day].entries())
      await store.record(String(i).padStart(32, '0') as TokenDigest, { ...issued, lifetimeMs: ms });
    const [index = ''] = (await redis.command('KEYS', 'expiry:*:expiry')) as string[];
    expect(await redis.command('ZCARD', index)).toBe(3);
  });
});
