import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PurgeFollower, PurgeHistory } from '../../src/url-resolver/purge-history.ts';
import {
  MemoryPurgeLog,
  type Purge,
  readPurgeEntry,
  retainedPurges,
} from '../../src/url-resolver/purge-log.ts';

function historyOf(purges: readonly Purge[]): PurgeHistory {
  const history = new PurgeHistory({ seq: 0, id: 'i0' });
  for (const [i, purge] of purges.entries()) {
    history.append({ seq: i + 1, id: `i${i + 1}`, previousId: `i${i}`, purge });
  }
  return history;
}

describe('what a purge covers', () => {
  it.each<[readonly Purge[], number, string, boolean]>([
    [[], 0, '/a', false],
    [['all'], 0, '/a', true],
    [['all'], 1, '/a', false],
    [[{ url: '/a' }], 0, '/a', true],
    [[{ url: '/a' }], 0, '/a/b', false],
    [[{ prefix: '/a' }], 0, '/a/b', true],
    [[{ prefix: '/a' }], 0, '/b', false],
    [[{ prefix: '/a' }, { prefix: '/a/b' }], 1, '/a/c', false],
    [[{ prefix: '/a/b' }, { prefix: '/a' }], 1, '/a/c', true],
    [[{ url: '/a' }, 'all', { url: '/b' }], 2, '/a', false],
    [[{ url: '/a' }, 'all', { url: '/b' }], 2, '/b', true],
    [[{ url: '/a' }, { url: '/a' }], 1, '/a', true],
    [[{ url: '/a' }, { url: '/c' }], 1, '/a', false],
    [[{ prefix: '/a' }, { url: '/c' }], 1, '/a/b', false],
  ])('%j, stamp %i, %s: %s', (purges, seq, url, isCovered) => {
    expect(historyOf(purges).isPurgedSince(seq, url)).toBe(isCovered);
    expect(historyOf(purges).accepts({ seq, id: `i${seq}` }, url)).toBe(!isCovered);
  });

  it('says what looking at every purge says', () => {
    const url = fc.constantFrom('/a', '/a/b', '/a/c', '/b', '');
    const purge = fc.oneof(
      fc.constant<Purge>('all'),
      url.map((prefix) => ({ prefix })),
      url.map((one) => ({ url: one })),
    );
    fc.assert(
      fc.property(fc.array(purge, { maxLength: 12 }), fc.nat(12), url, (purges, seq, asked) => {
        const stamp = Math.min(seq, purges.length);
        const expected = purges.slice(stamp).some((one) => {
          if (one === 'all') return true;
          return 'url' in one ? one.url === asked : asked.startsWith(one.prefix);
        });
        expect(historyOf(purges).isPurgedSince(stamp, asked)).toBe(expected);
      }),
    );
  });

  it('believes no stamp of another past, nor one older than what it keeps', () => {
    const history = historyOf([{ url: '/a' }]);
    expect(history.accepts({ seq: 1, id: 'other' }, '/b')).toBe(false);
    expect(history.accepts({ seq: 2, id: 'i2' }, '/b')).toBe(false);
    const long = historyOf(Array.from({ length: 3 * retainedPurges }, (_, i) => ({ url: `/${i}` })));
    expect(long.isPurgedSince(0, '/b')).toBe(true);
    expect(long.isPurgedSince(3 * retainedPurges - 10, '/b')).toBe(false);
    expect(long.isPurgedSince(3 * retainedPurges - 10, `/${3 * retainedPurges - 1}`)).toBe(true);
  });
});

it.each([
  ['3:id:before:{"url":"/a:b"}', { url: '/a:b' }],
  ['3:id:before:{"prefix":"/"}', { prefix: '/' }],
  ['3:id:before:"all"', 'all'],
  ['3:id:before:null', null],
  ['3:id:before:{"newer":1}', 'all'],
  ['3:id:before:', 'all'],
])('reads %s', (line, purge) => {
  expect(readPurgeEntry(line)).toEqual({ seq: 3, id: 'id', previousId: 'before', purge });
});

it('a follower that missed a message reads it in the log', async () => {
  const log = new MemoryPurgeLog();
  const forgotten: number[] = [];
  const deaf = new PurgeFollower(
    {
      append: (purge) => log.append(purge),
      read: async (from) => {
        await new Promise((resolve) => setImmediate(resolve));
        return log.read(from);
      },
      subscribe: () => () => {},
    },
    () => forgotten.push(1),
  );
  await deaf.start();
  expect(forgotten).toEqual([1]);
  await log.append({ url: '/a' });
  const second = await log.append({ url: '/b' });
  expect(deaf.history.isPurgedSince(0, '/a')).toBe(false);
  deaf.hear(second);
  await deaf.catchUp();
  deaf.stop();
  expect(deaf.history.position.seq).toBe(2);
  expect(deaf.history.isPurgedSince(0, '/a')).toBe(true);
  expect(forgotten).toEqual([1]);
});

it('what follows a place on the log is given to the last entry; from no place of it, where the log stands', async () => {
  const log = new MemoryPurgeLog();
  const heard: number[] = [];
  const unsubscribe = log.subscribe({ onEntry: ({ seq }) => heard.push(seq), onGap: () => {} });
  const [first, second] = [await log.append('all'), await log.append({ url: '/a' })];
  expect(await log.read(first)).toEqual({ kind: 'continues', entries: [second] });
  expect(await log.read(second)).toEqual({ kind: 'continues', entries: [] });
  const { seq, id } = second;
  expect(await log.read({ seq: 2, id: 'other' })).toMatchObject({
    ...{ kind: 'another-past', position: { seq, id } },
  });
  unsubscribe();
  await log.append('all');
  expect([heard, second.previousId === first.id]).toEqual([[1, 2], true]);
});

it('keeps 10,000 entries at least, and less than twice as many', async () => {
  const log = new MemoryPurgeLog();
  const entries = [await log.append('all')];
  // Entry 0 is there as well.
  while (entries.length < 2 * retainedPurges - 1) entries.push(await log.append('all'));
  const from = (index: number) => log.read(entries.at(index) as (typeof entries)[number]);
  expect(await from(0)).toMatchObject({ kind: 'continues' });
  entries.push(await log.append('all'));
  expect(await from(-retainedPurges)).toMatchObject({ kind: 'continues' });
  expect(await from(-retainedPurges - 1)).toMatchObject({ kind: 'another-past' });
});

describe('a follower', () => {
  function follow(read: MemoryPurgeLog['read'], log = new MemoryPurgeLog()) {
    const seen = { reads: 0, forgotten: 0 };
    const follower = new PurgeFollower(
      {
        append: (purge) => log.append(purge),
        subscribe: (listener) => log.subscribe(listener),
        read(from) {
          seen.reads += 1;
          return read.call(log, from);
        },
      },
      () => {
        seen.forgotten += 1;
      },
    );
    return { log, seen, follower };
  }

  it('reads once more when it was told to during a reading, and once for many', async () => {
    const { log, seen, follower } = follow(MemoryPurgeLog.prototype.read);
    await Promise.all([follower.catchUp(), follower.catchUp(), follower.catchUp()]);
    expect(seen).toEqual({ reads: 2, forgotten: 1 });
    await log.append({ url: '/a' });
    await follower.catchUp();
    expect([seen.reads, follower.history.position.seq]).toEqual([3, 1]);
  });

  it('stays where it is while the log is away', async () => {
    const { seen, follower } = follow(() => Promise.reject(new Error('away')));
    await follower.catchUp();
    await follower.catchUp();
    expect([seen, follower.history.position.seq]).toEqual([{ reads: 2, forgotten: 0 }, 0]);
  });

  it('takes an entry over that follows, passes over one that it has, and reads where one is missing', async () => {
    const { log, seen, follower } = follow(MemoryPurgeLog.prototype.read);
    await follower.start();
    expect(seen.reads).toBe(1);
    const first = await log.append({ url: '/a' });
    expect([follower.history.position.seq, seen.reads]).toEqual([1, 1]);
    follower.hear(first);
    expect(seen.reads).toBe(1);
    follower.hear({ ...first, seq: 5, id: 'elsewhere' });
    expect(seen.reads).toBe(2);
    follower.stop();
    await log.append({ url: '/b' });
    expect(follower.history.position.seq).toBe(1);
  });
});
