import { describe, expect, test } from 'vitest';
import { RedisTagStore } from '../../src/entity-tags/redis-store.ts';
import type { ReadEnd, ResourceKey } from '../../src/entity-tags/tag-store.ts';
import type { Redis, RedisArgument, RedisScript } from '../../src/redis/redis.ts';

const times = {
  ...{ leaseMs: 10, coldStartMs: 30, longestReadMs: 40 },
  ...{ recordExpiryMs: 500, anonymousExpiryMs: 60 },
};
const keyOf = (text: string) => text as ResourceKey;
const one = keyOf(`a${'0'.repeat(31)}`);
const other = keyOf(`b${'0'.repeat(31)}`);
type Operation = readonly (string | number | boolean | string[])[];

/** A store over a Redis that says what the test lets it say; what the real one says is the contract's. */
function open(answers: (operations: readonly Operation[]) => unknown, more: object = {}, kind = 'single') {
  const state = { nowMs: 1000, storeMicros: 5_000_000, coldUntil: 0, replicas: 0, raw: undefined as unknown };
  const calls: { name: string; keys: readonly string[]; args: readonly RedisArgument[] }[] = [];
  const coldStarts: number[] = [];
  const run = async ({ name }: RedisScript, keys: string[], args: RedisArgument[]) => {
    calls.push({ name, keys, args });
    if (state.raw !== undefined) return state.raw;
    const asked = JSON.parse(String(args[3]));
    return JSON.stringify(['epoch', String(state.storeMicros), String(state.coldUntil), answers(asked)]);
  };
  const redis = {
    kind,
    runScript: run,
    runScriptAndWait: async (...call: Parameters<typeof run>) => ({
      reply: await run(...call),
      replicas: state.replicas,
    }),
  } as unknown as Redis;
  const store = new RedisTagStore({
    ...{ redis, times, now: () => state.nowMs, onColdStart: (ms: number) => coldStarts.push(ms) },
    ...more,
  });
  return { store, state, calls, coldStarts };
}

const endOf = (token: string) =>
  ({ token, tagged: true, outcome: 'applied', newTag: 'n', shopTag: null }) as const;

const operationsOf = ({ calls }: ReturnType<typeof open>) =>
  calls.map(({ args }) => JSON.parse(String(args[3])) as Operation[]);

describe('a look', () => {
  const lookUp = (...answer: string[]) => open(() => [answer]).store.lookUp(one, 'v');
  const stamp = { epoch: 'e', startedAt: 9000 };
  test.each<[string[], object]>([
    [['e', '9000', '', 'tag', ''], { stamp, tag: 'tag', unsettled: null, recorded: null }],
    [['e', '9000', 'lease', '', ''], { stamp, tag: null, unsettled: 'lease' }],
    [['e', '9000', 'cold-start', '', ''], { stamp: null, unsettled: 'cold-start' }],
    [['e', '9000', 'indeterminate', '', ''], { stamp: null, unsettled: 'indeterminate' }],
    [['e', '9000', '', 'tag', 'f|4000|Vary|x'], { recorded: { ageMs: 5, fields: 'Vary|x' } }],
  ])('%j', async (answer, expected) => {
    expect(await lookUp(...answer)).toMatchObject(expected);
  });
});

test('a claim is answered what Redis says, and as not replicated where too few replicas have it', async () => {
  const claim = (answer: unknown, replicas = 2) => {
    const opened = open(() => [answer], { replicas: 2 });
    opened.state.replicas = replicas;
    return opened.store.claim(one, { token: 't', tags: ['tag'] });
  };
  expect(await claim(['granted', '0', 'shop'])).toEqual({ kind: 'granted', shopTag: 'shop' });
  expect(await claim(['granted', '0', ''])).toEqual({ kind: 'granted', shopTag: null });
  expect(await claim(['granted', '0', ''], 1)).toEqual({ kind: 'not-replicated' });
  expect(await claim(['not-current', '0'], 1)).toEqual({ kind: 'not-current' });
  for (const kind of ['busy', 'indeterminate', 'cold-start'])
    expect(await claim([kind, '1500'], 0)).toEqual({ kind, remainingMs: 1.5 });
  await expect(claim(['something new'])).rejects.toMatchObject({ word: 'error' });
  await expect(claim(false)).rejects.toMatchObject({ word: 'error' });
});

test.each([
  [{ tags: ['x', 'y'] }, ['1', true, ['x', 'y']], 500],
  [{ tags: null }, ['0', true, []], 500],
  [{ tags: null, isAnonymous: true }, ['0', false, []], 60],
  [{ tags: null, isAnonymous: true, isOpen: true }, ['o', false, []], 60],
] as const)('a claim of %j', async (wanted, rest, expiryMs) => {
  const opened = open(() => [['granted', '0', '']]);
  await opened.store.claim(one, { token: 't', ...wanted });
  expect(opened.calls[0]?.args.slice(0, 3)).toEqual([10_000, 30_000, 40_000]);
  expect(operationsOf(opened)).toEqual([[['claim', expiryMs, 't', ...rest]]]);
});

test('the claims of one turn are one script, each its own answer; too few replicas take back what was granted only', async () => {
  const opened = open(
    (operations) =>
      operations.map(([, , token]) =>
        token === 'broken' ? false : token === 'late' ? ['busy', '1500'] : ['granted', '0', token],
      ),
    { replicas: 1 },
  );
  const claimAll = () =>
    Promise.allSettled(
      ['a', 'broken', 'late', 'b'].map((token) => opened.store.claim(one, { token, tags: null })),
    );
  const answersOf = (settled: PromiseSettledResult<unknown>[]) =>
    settled.map((each) => (each.status === 'fulfilled' ? each.value : each.reason.word));
  opened.state.replicas = 1;
  const busy = { kind: 'busy', remainingMs: 1.5 };
  const granted = (shopTag: string) => ({ kind: 'granted', shopTag });
  const [first, ended] = await Promise.all([claimAll(), opened.store.end(one, endOf('m'))]);
  expect(answersOf(first)).toEqual([granted('a'), 'error', busy, granted('b')]);
  expect(ended).toBe('granted');
  expect(opened.calls.map(({ name }) => name)).toEqual(['tags.claims', 'tags.operations']);
  // A broken one has done what it could: it is given back from now on, and not never.
  const [, broken] = first;
  const until = broken?.status === 'rejected' ? broken.reason.mayTakeEffectUntilMs : undefined;
  expect(until).toBeLessThanOrEqual(performance.now());
  opened.state.replicas = 0;
  const none = { kind: 'not-replicated' };
  expect(answersOf(await claimAll())).toEqual([none, 'error', busy, none]);
});

test('what one turn asks of a slot is one script, each its own answer; a broken record is its own caller’s', async () => {
  const opened = open((operations) =>
    operations.map(([, , token]) => (token === 'broken' ? false : ['tag'])),
  );
  const { store } = opened;
  const end = endOf('t');
  const asked = await Promise.allSettled([
    store.end(other, endOf('broken')),
    store.end(one, end),
    store.end(one, { ...end, tagged: false, isAnonymous: true, newTag: null, shopTag: 's' }),
    store.end(one, { ...end, isOpen: true }),
  ]);
  expect(asked.map((each) => (each.status === 'fulfilled' ? each.value : each.reason))).toEqual([
    ...[expect.objectContaining({ word: 'error' }), 'tag', 'tag', 'tag'],
  ]);
  expect(operationsOf(opened)).toEqual([
    [
      ['end', 500, 'broken', '1', 'applied', 'n', ''],
      ['end', 500, 't', '1', 'applied', 'n', ''],
      ['end', 60, 't', '0', 'applied', '', 's'],
      ['end', 500, 't', 'o', 'applied', 'n', ''],
    ],
  ]);
  expect(opened.calls[0]?.keys).toEqual([
    ...['shopward:{tags-0}:epoch', ...[other, one, one, one].map((key) => `shopward:{tags-0}:${key}`)],
  ]);
  expect(await store.end(one, endOf('later'))).toBe('tag');
  expect(opened.calls).toHaveLength(2);
});

test('more than 64 operations of one turn are more scripts', async () => {
  const opened = open((operations) => operations.map(() => ['0']));
  await Promise.all(Array.from({ length: 130 }, (_, i) => opened.store.end(one, endOf(`t${i}`))));
  expect(operationsOf(opened).map(({ length }) => length)).toEqual([64, 64, 2]);
});

test('a read ends with what was seen of it; without a tag there is none', async () => {
  const read: ReadEnd = {
    ...{ stamp: { epoch: 'e', startedAt: 5 }, variant: 'v', fingerprint: null },
    ...{ newTag: 'n', shopTag: null, isOfCollection: false, fields: null },
  };
  const opened = open((operations) =>
    operations.map(([, , , , variant]) => (variant === 'none' ? [''] : ['tag', 'g'])),
  );
  expect(
    await Promise.all([
      opened.store.endRead(one, read),
      opened.store.endRead(one, { ...read, variant: 'none', isAnonymous: true, fingerprint: 'f' }),
    ]),
  ).toEqual([{ tag: 'tag', fingerprint: 'g' }, null]);
  expect(operationsOf(opened)).toEqual([
    [
      ['endRead', 500, 'e', 5, 'v', '', 'n', '', false, '', true],
      ['endRead', 60, 'e', 5, 'none', 'f', 'n', '', false, '', false],
    ],
  ]);
});

test('a cold start is reported once, ends by itself, and ends with a reply that knows of none', async () => {
  const opened = open((operations) => operations.map(() => ['epoch', '0', '', '', '']));
  const { store, state, coldStarts } = opened;
  state.coldUntil = state.storeMicros + 20_000;
  expect(await store.warmUp()).toBe(20);
  await store.lookUp(one, null);
  expect(coldStarts).toEqual([20]);
  state.nowMs += 19;
  expect(store.coldStartLeftMs()).toBe(1);
  state.nowMs += 1;
  expect(store.coldStartLeftMs()).toBe(0);
  await store.lookUp(one, null);
  expect(coldStarts).toEqual([20, 20]);
  state.coldUntil = state.storeMicros;
  await store.lookUp(one, null);
  expect(store.coldStartLeftMs()).toBe(0);
});

test('a Cluster has 64 markers, which are all warmed up', async () => {
  const opened = open((operations) => operations.map(() => ['']), {}, 'cluster');
  expect(await opened.store.warmUp()).toBe(0);
  expect(new Set(opened.calls.map(({ keys }) => keys[0])).size).toBe(64);
});

test('what nobody understands is a store that is away, for all who asked', async () => {
  const opened = open(() => []);
  opened.state.raw = ['a list'];
  const asked = [opened.store.end(one, endOf('a')), opened.store.end(other, endOf('b'))];
  for (const each of asked) await expect(each).rejects.toMatchObject({ word: 'error' });
});

test('of two stamps of one past the later one counts; where the clock was not heard there is none', async () => {
  const opened = open((operations) => operations.map(() => ['']));
  const { store, state } = opened;
  expect([store.readStampAt(one, state.nowMs), store.hasHeard(one)]).toEqual([null, false]);
  await store.lookUp(one, null);
  const stamp = store.readStampAt(one, state.nowMs);
  expect([stamp?.epoch, store.hasHeard(one)]).toEqual(['epoch', true]);
  const startedAt = stamp?.startedAt ?? 0;
  const earlier = (epoch: string, at: number) => ({ epoch, startedAt: at });
  const stampAfter = (epoch: string, at: number) => store.readStampAt(one, state.nowMs, earlier(epoch, at));
  expect(stampAfter('epoch', startedAt + 1)?.startedAt).toBe(startedAt + 1);
  expect(stampAfter('epoch', startedAt - 1)?.startedAt).toBe(startedAt);
  expect(stampAfter('another', startedAt + 1)?.startedAt).toBe(startedAt);
});
