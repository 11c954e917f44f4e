import { describe, expect, test } from 'vitest';
import { type Applied, checkHistory, type Told, type Write } from './history.ts';

const applied = (write: string, basedOn: number | null, replaced: number): Applied => ({
  write,
  cart: '1',
  kind: basedOn === null ? 'child' : 'patch',
  basedOn,
  replaced,
  result: replaced + 1,
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
  test('a history in which each write replaced what it had read', () => {
    const writes = [
      told('a', 'accepted', 2),
      told('b', 'accepted', 3),
      told('c', 'unknown'),
      told('d', 'unknown'),
      told('e', 'refused'),
    ];
    expect(checkHistory(good, writes)).toEqual({
      lost: [],
      invented: [],
      appliedThoughRefused: [],
      appliedTwice: [],
      unknown: { applied: 1, notApplied: 1 },
    });
  });

  const lost = applied('x', 2, 4);
  const cases: readonly (readonly [string, readonly Applied[], readonly Write[], object])[] = [
    ['a lost update', [...good, lost], [told('x', 'accepted', 5)], { lost: [lost] }],
    ['a lost update that nobody was told of', [...good, lost], [told('x', 'unknown')], { lost: [lost] }],
    [
      'accepted, and not applied',
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
      'refused, and applied',
      good,
      [told('a', 'refused')],
      { appliedThoughRefused: [expect.objectContaining({ write: 'a' })] },
    ],
    ['applied twice', [...good, applied('c', 4, 4)], [told('c', 'unknown')], { appliedTwice: ['c'] }],
  ];
  test.each(cases)('finds: %s', (_, all, writes, found) => {
    expect(checkHistory(all, writes)).toMatchObject(found);
  });
});
