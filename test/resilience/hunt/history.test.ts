import { describe, expect, test } from 'vitest';
import { type Applied, checkHistory, type NotModified, type Told, type Write } from './history.ts';

const applied = (write: string, basedOn: number | null, replaced: number): Applied => ({
  write,
  cart: '1',
  kind: basedOn === null ? 'child' : 'patch',
  basedOn,
  replaced,
  result: replaced + 1,
  atMs: 1000 * replaced,
});
/** Version 1 is current until 1000, 2 until 2000, 3 until 3000, and 4 after that. */
const notModified = (version: number, askedMs: number, answeredMs: number): NotModified => ({
  cart: '1',
  version,
  askedMs,
  answeredMs,
});
const told = (write: string, what: Told, result?: number): Write => ({
  write,
  cart: '1',
  kind: 'patch',
  told: what,
  result,
});

const good = [applied('a', 1, 1), applied('b', null, 2), applied('c', 3, 3)];

describe('the checker', () => {
  test('finds nothing in a history in which each write replaced what it had read', () => {
    const writes = [
      told('a', 'accepted', 2),
      told('b', 'accepted', 3),
      told('c', 'unknown'),
      told('d', 'unknown'),
      told('e', 'refused'),
    ];
    const current = [
      notModified(1, 10, 20),
      notModified(1, 990, 1010),
      notModified(2, 990, 1010),
      notModified(2, 900, 2100),
      notModified(4, 9000, 9001),
      { ...notModified(1, 9000, 9001), cart: '2' },
    ];
    expect(checkHistory(good, writes, current)).toEqual({
      lost: [],
      needless: 0,
      invented: [],
      appliedThoughRefused: [],
      appliedTwice: [],
      stale: [],
      unknown: { applied: 1, notApplied: 1 },
    });
  });

  const lost = applied('x', 2, 4);
  const cases: readonly (readonly [string, readonly Applied[], readonly Write[], object])[] = [
    ['a lost update', [...good, lost], [told('x', 'accepted', 5)], { lost: [lost] }],
    ['a lost update with an unknown outcome', [...good, lost], [told('x', 'unknown')], { lost: [lost] }],
    [
      'accepted, but not applied',
      good,
      [told('n', 'accepted')],
      { invented: [expect.objectContaining({ write: 'n' })] },
    ],
    [
      'accepted with the state of another write',
      good,
      [told('a', 'accepted', 4)],
      { invented: [expect.objectContaining({ write: 'a' })] },
    ],
    [
      'refused, but applied',
      good,
      [told('a', 'refused')],
      { appliedThoughRefused: [expect.objectContaining({ write: 'a' })] },
    ],
    ['applied twice', [...good, applied('c', 4, 4)], [told('c', 'unknown')], { appliedTwice: ['c'] }],
  ];
  test.each(cases)('finds: %s', (_, all, writes, found) => {
    expect(checkHistory(all, writes, [])).toMatchObject(found);
  });

  test.each([
    ['for a version that was replaced just before the request', notModified(1, 1001, 1002)],
    ['for a version that was replaced long before the request', notModified(1, 9000, 9001)],
    ['for a version that was made after the answer', notModified(3, 1990, 1999)],
  ])('finds: a 304 %s', (_, stale) => {
    expect(checkHistory(good, [], [notModified(4, 4000, 4001), stale]).stale).toEqual([stale]);
  });
});
