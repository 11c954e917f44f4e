import { describe, expect, test } from 'vitest';
import { agree, type Member, type Register } from '../../src/redis/members.ts';

const mine: Member = {
  owner: 'shop',
  leaseMs: 15_000,
  tracked: ['PATCH /carts/{id}'],
  digestKey: 'a',
};
const register: Register = {
  isNew: false,
  digestKey: 'a',
  others: [mine],
};
const carts = 'PATCH /carts/{id}';
const fine = { coldStartMs: 15_000, untracked: [] as string[], refusesTokens: false };

describe('what follows from what the others say', () => {
  test.each<[string, Partial<Member>, Partial<Register>, Partial<typeof fine>, RegExp | undefined]>([
    ['all say the same', {}, {}, {}, undefined],
    ['nobody else is there', {}, { others: [] }, {}, undefined],
    [
      'another has a longer lease',
      {},
      { others: [{ ...mine, leaseMs: 60_000 }] },
      { coldStartMs: 60_000 },
      /lease differs.*15s, 60s/,
    ],
    ['another has a shorter lease', {}, { others: [{ ...mine, leaseMs: 5_000 }] }, {}, /lease differs/],
    [
      'another has no tags',
      {},
      { others: [{ ...mine, leaseMs: 0, tracked: [] }] },
      { untracked: [carts] },
      /does not track PATCH \/carts\/\{id\}/,
    ],
    [
      'another tracks more',
      {},
      { others: [{ ...mine, tracked: [...mine.tracked, 'PATCH /lists/{id}'] }] },
      {},
      undefined,
    ],
    [
      'another tracks something else',
      {},
      { others: [{ ...mine, tracked: ['PATCH /lists/{id}'] }] },
      { untracked: [carts] },
      /does not track/,
    ],
    [
      'one of several lacks it',
      {},
      { others: [mine, { ...mine, tracked: [] }] },
      { untracked: [carts] },
      /does not track/,
    ],
    [
      'another does not track one of two',
      { tracked: [carts, 'PATCH /lists/{id}'] },
      {},
      { untracked: ['PATCH /lists/{id}'] },
      /does not track PATCH \/lists\/\{id\} /,
    ],
    [
      'another calls a parameter otherwise, so that its records have other keys',
      {},
      { others: [{ ...mine, tracked: ['PATCH /carts/{uuid}'] }] },
      { untracked: [carts] },
      /does not track/,
    ],
    ['nothing is tracked here', { leaseMs: 0, tracked: [] }, {}, {}, undefined],
    ['the tokens are under another key', {}, { digestKey: 'b' }, { refusesTokens: true }, /digestKey/],
    [
      'another has another key, and the marker is mine',
      {},
      { others: [{ ...mine, digestKey: 'b' }] },
      {},
      undefined,
    ],
    ['no tokens here', { digestKey: '' }, { digestKey: 'b' }, {}, undefined],
    [
      'another shop uses the prefix',
      {},
      { others: [{ ...mine, owner: 'stage' }] },
      {},
      /another shop.*"stage"/,
    ],
  ])('%s', (_, member, said, expected, problem) => {
    const { problems, ...rest } = agree({ ...mine, ...member }, { ...register, ...said });
    const hold = member.leaseMs === 0 ? 15_000 : fine.coldStartMs;
    expect(rest).toEqual({ ...fine, coldStartMs: hold, ...expected });
    if (problem === undefined) expect(problems).toEqual([]);
    else expect(problems.join()).toMatch(problem);
  });
});
