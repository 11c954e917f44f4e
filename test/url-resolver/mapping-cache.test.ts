import { describe, expect, test } from 'vitest';
import { LocalCache } from '../../src/url-resolver/local-cache.ts';
import { MappingCache } from '../../src/url-resolver/mapping-cache.ts';
import { startCounts } from '../../src/url-resolver/options.ts';
import type { Partition } from '../../src/url-resolver/partition.ts';
import { PurgeEpochs } from '../../src/url-resolver/purge-epochs.ts';
import { refuseFailure } from '../../src/url-resolver/response.ts';
import type { SharedCache } from '../../src/url-resolver/shared-cache.ts';
import { fail, type LookupOutcome, type UpstreamSource } from '../../src/url-resolver/source.ts';

const mapping = { entityType: 'abstract-products', entityId: '134' };
const found: LookupOutcome = { kind: 'found', mapping, keep: true };
const unknown: LookupOutcome = { kind: 'unknown', keep: true };
const failed = fail('unreachable', 'refused');
const url = '/en/acer';
const query = { url, partition: { locale: 'en' } as Partition, client: 'c', key: 'k' };
/** Milliseconds; each is met from both sides below. */
const lifetimes = {
  ttlMs: 10_000,
  notFoundTtlMs: 4000,
  staleWhileRevalidateMs: 5000,
  staleIfErrorMs: 20_000,
};

type Copy = Awaited<ReturnType<SharedCache['get']>>;

function open(shared?: Copy) {
  const epochs = new PurgeEpochs();
  const local = new LocalCache(10, epochs);
  const counts = startCounts();
  const clock = { nowMs: 1_000_000 };
  const source = { outcome: found as LookupOutcome | Promise<LookupOutcome> };
  const put: object[] = [];
  const cache = new MappingCache({
    ...{ local, epochs, lifetimes, counts, staleWaitMs: 60_000, now: () => clock.nowMs },
    shared: (shared && {
      get: async () => shared,
      put: (_key: string, copy: object) => put.push(copy),
    }) as SharedCache | undefined,
    source: {
      enter: () => ({ turn: undefined, leave() {} }),
      ask: async () => source.outcome,
    } as unknown as UpstreamSource,
    tagOf: () => '"t"',
    onFailure: () => {},
  });
  const ask = async (more: object = {}) => {
    const result = await cache.find({ ...query, ...more });
    // What was begun beside it.
    await new Promise((resolve) => setImmediate(resolve));
    return 'provenance' in result
      ? `${result.kind}, max-age=${result.provenance.maxAgeSeconds}, ${result.provenance.cacheStatus}`
      : result;
  };
  const pass = (ms: number) => {
    clock.nowMs += ms;
  };
  return { ask, pass, counts, clock, source, local, epochs, put, cache };
}

describe('a mapping', () => {
  test('is fresh for its time, then stale while it is asked anew, then waited for', async () => {
    const { ask, pass, counts, source } = open();
    expect(await ask()).toBe('known, max-age=10, shopward; fwd=miss; stored; ttl=10');
    pass(9999);
    expect(await ask()).toBe('known, max-age=0, shopward; hit; ttl=0');
    expect([counts.lookups, counts.hits]).toEqual([1, 1]);
    source.outcome = failed;
    pass(1);
    expect(await ask()).toBe('known, max-age=0, shopward; hit; ttl=0; detail=revalidating');
    expect([counts.lookups, counts.staleHits, counts.failures]).toEqual([2, 1, 1]);
    // Asked again when the failure is five seconds old, and that is when it is not stale enough any more.
    pass(4999);
    expect(await ask()).toBe('known, max-age=0, shopward; hit; ttl=-5; detail=revalidating');
    expect(counts.lookups).toBe(2);
    pass(1);
    expect(await ask()).toBe('known, max-age=0, shopward; hit; ttl=-5; detail=error');
    expect([counts.lookups, counts.misses]).toEqual([3, 2]);
    pass(4999);
    expect(await ask()).toBe('known, max-age=0, shopward; hit; ttl=-10; detail=error');
    expect(counts.lookups).toBe(3);
    source.outcome = found;
    pass(1);
    expect(await ask()).toBe('known, max-age=10, shopward; fwd=stale; stored; ttl=10');
    expect(counts).toMatchObject({ lookups: 4, staleHits: 4, failures: 2, collapsed: 0 });
  });

  test('is given out for so long where the source fails, and not a moment longer', async () => {
    const { ask, pass, source } = open();
    await ask();
    source.outcome = failed;
    pass(29_999);
    expect(await ask()).toBe('known, max-age=0, shopward; hit; ttl=-20; detail=error');
    pass(1);
    expect(await ask()).toEqual(failed);
  });

  test('is looked up again by one request', async () => {
    const { ask, pass, counts, source } = open();
    await ask();
    pass(10_000);
    let answer = (_: LookupOutcome) => {};
    source.outcome = new Promise((resolve) => {
      answer = resolve;
    });
    await Promise.all([ask(), ask(), ask()]);
    expect(counts.lookups).toBe(2);
    answer(found);
  });

  test('that is not to be kept is not, nor is one that a purge came before', async () => {
    const { ask, counts, source, epochs, local } = open();
    source.outcome = { ...found, keep: false };
    expect(await ask()).toBe('known, max-age=0, shopward; fwd=miss');
    let answer = (_: LookupOutcome) => {};
    source.outcome = new Promise((resolve) => {
      answer = resolve;
    });
    const asking = ask();
    await new Promise((resolve) => setImmediate(resolve));
    epochs.raise('p:', 'e');
    answer(found);
    expect(await asking).toBe('known, max-age=0, shopward; fwd=miss');
    expect([counts.notKept, local.size]).toEqual([2, 0]);
  });

  test('of a partition that has no key is asked uncached', async () => {
    const { ask, counts, local } = open();
    expect(await ask({ key: undefined })).toBe('known, max-age=0, shopward; fwd=bypass');
    expect([counts.bypasses, counts.lookups, local.size]).toEqual([1, 1, 0]);
  });
});

test('not found is fresh for its own time, and never stale', async () => {
  const { ask, pass, counts, source } = open();
  source.outcome = unknown;
  expect(await ask()).toBe('unknown, max-age=4, shopward; fwd=miss; stored; ttl=4');
  pass(3999);
  expect(await ask()).toBe('unknown, max-age=0, shopward; hit; ttl=0');
  expect(counts).toMatchObject({ hits: 0, notFoundHits: 1 });
  source.outcome = failed;
  pass(1);
  expect(await ask()).toEqual(failed);
});

describe('the copy that replicas share', () => {
  /** With the stamp that its URL has in this process. */
  const withStamp = (opened: ReturnType<typeof open>, shared: Copy) =>
    Object.assign(shared as object, { stamp: opened.epochs.stampOf(url) });

  test.each([
    [0, 'known, max-age=10, shopward; hit; ttl=10; detail=shared', 0],
    [9999, 'known, max-age=0, shopward; hit; ttl=0; detail=shared', 0],
    [10_000, 'known, max-age=0, shopward; hit; ttl=0; detail=revalidating', 1],
    [15_000, 'known, max-age=10, shopward; fwd=stale; stored; ttl=10', 1],
    [30_000, 'known, max-age=10, shopward; fwd=miss; stored; ttl=10', 1],
  ])('%i ms old: %s', async (ageMs, said, lookups) => {
    const shared = { mapping, ageMs, stamp: '' } as Copy;
    const opened = open(shared);
    withStamp(opened, shared);
    expect([await opened.ask(), opened.counts.lookups]).toEqual([said, lookups]);
    expect(opened.counts.sharedHits).toBe(lookups === 0 ? 1 : 0);
    expect(opened.put).toHaveLength(lookups);
  });

  test('with another stamp is ignored', async () => {
    const { ask, counts } = open({ mapping, ageMs: 0, stamp: '' } as Copy);
    expect([await ask(), counts.sharedHits]).toEqual([
      'known, max-age=10, shopward; fwd=miss; stored; ttl=10',
      0,
    ]);
  });
});

test('mappings and "not found" have room of their own, a tenth for the latter', () => {
  const epochs = new PurgeEpochs();
  const cache = new LocalCache(10, epochs);
  const entry = (is: boolean) => ({
    ...{ entityType: is ? 'merchants' : null, entityId: '1', tag: '', freshUntilMs: 0, retryAtMs: 0 },
    ...{ stamp: epochs.stampOf(url), version: epochs.version },
  });
  for (let i = 0; i < 20; i += 1) cache.set(`found ${i}`, entry(true));
  for (let i = 0; i < 20; i += 1) cache.set(`not ${i}`, entry(false));
  expect(cache.size).toBe(11);
  expect([cache.get('found 19', url), cache.get('found 10', url), cache.get('found 9', url)]).toEqual([
    ...[expect.anything(), expect.anything(), undefined],
  ]);
  // A key has one entry.
  cache.set('found 19', entry(false));
  cache.set('not 19', entry(true));
  expect([cache.get('found 19', url)?.entityType, cache.get('not 19', url)?.entityType]).toEqual([
    ...[null, 'merchants'],
  ]);
  const { size } = cache;
  epochs.raise('p:', 'e');
  expect([cache.get('found 19', url), cache.get('not 19', url), cache.size]).toEqual([
    ...[undefined, undefined, size - 2],
  ]);
});

test.each([
  ['timeout', 'upstream-timeout', undefined],
  ['overloaded', 'overloaded', 1],
  ['invalid', 'upstream-invalid', undefined],
  ['unreachable', 'upstream-unreachable', undefined],
] as const)('%s is refused as %s, and kept by nobody', (fault, rejection, retryAfterSeconds) => {
  const refused = refuseFailure(fail(fault, 'why'));
  expect(refused).toMatchObject({ rejection, reason: 'why' });
  expect(refused?.retryAfterSeconds).toBe(retryAfterSeconds);
  expect(refused?.fields).toEqual(['Cache-Control', 'no-store', 'X-Content-Type-Options', 'nosniff']);
  expect(refuseFailure(fail('unrecognized', 'why'))).toBeUndefined();
});
