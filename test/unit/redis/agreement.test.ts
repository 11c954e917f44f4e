import { describe, expect, test } from 'vitest';
import { type Member, type Register, agree } from '../../../src/redis/membership.ts';

const own: Member = {
  version: '0.1.0',
  forms: { oldest: 6, newest: 6 },
  owner: 'shop',
  leaseMs: 15_000,
  tracked: ['PATCH /carts/{id}'],
  digestKey: 'a',
};
const register: Register = {
  isNew: false,
  form: 6,
  digestKey: 'a',
  others: [own],
};
const carts = 'PATCH /carts/{id}';
const fine = {
  coldStartMs: 15_000,
  untracked: [] as string[],
  passesBy: false,
  refusesTokens: false,
  refusesAll: false,
  form: 6,
};
const newer = { ...own, version: '0.3.0', forms: { oldest: 7, newest: 8 } };

describe('agree', () => {
  test.each<
    [
      string,
      Partial<Member>,
      Partial<Omit<Register, 'others'>> & { others?: object[] },
      Partial<typeof fine>,
      RegExp | undefined,
    ]
  >([
    ['all members are alike', {}, {}, {}, undefined],
    ['no other members', {}, { others: [] }, {}, undefined],
    [
      'another has a longer lease',
      {},
      { others: [{ ...own, leaseMs: 60_000 }] },
      { coldStartMs: 60_000 },
      /lease differs.*15s, 60s/,
    ],
    ['another has a shorter lease', {}, { others: [{ ...own, leaseMs: 5_000 }] }, {}, /lease differs/],
    [
      'another has no lease and tracks nothing',
      {},
      { others: [{ ...own, leaseMs: 0, tracked: [] }] },
      { untracked: [carts] },
      /does not track PATCH \/carts\/\{id\}/,
    ],
    [
      'another tracks more',
      {},
      { others: [{ ...own, tracked: [...own.tracked, 'PATCH /lists/{id}'] }] },
      { passesBy: true },
      undefined,
    ],
    [
      'another tracks only another resource',
      {},
      { others: [{ ...own, tracked: ['PATCH /lists/{id}'] }] },
      { untracked: [carts], passesBy: true },
      /does not track/,
    ],
    [
      'one of two others tracks nothing',
      {},
      { others: [own, { ...own, tracked: [] }] },
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
      'another has another parameter name, so its records have other keys',
      {},
      { others: [{ ...own, tracked: ['PATCH /carts/{uuid}'] }] },
      { untracked: [carts], passesBy: true },
      /does not track/,
    ],
    ['nothing is tracked here', { leaseMs: 0, tracked: [] }, {}, { passesBy: true }, undefined],
    ['the register has another digest key', {}, { digestKey: 'b' }, { refusesTokens: true }, /digestKey/],
    [
      'another member has another digest key, the register has ours',
      {},
      { others: [{ ...own, digestKey: 'b' }] },
      {},
      undefined,
    ],
    [
      'a newer version knows the form in force',
      {},
      { others: [{ ...newer, forms: { oldest: 6, newest: 7 } }] },
      {},
      undefined,
    ],
    [
      'the form in force is one that this version does not know',
      {},
      { form: 7, others: [newer, own] },
      { refusesAll: true, form: 7 },
      /^another version of shopward shares this store: 0\.3\.0, and this is 0\.1\.0\./,
    ],
    [
      'another version does not know the form in force: it refuses, not this one',
      {},
      { others: [newer] },
      {},
      undefined,
    ],
    ['no digest key here', { digestKey: '' }, { digestKey: 'b' }, {}, undefined],
    [
      'another shop uses the prefix',
      {},
      { others: [{ ...own, owner: 'stage' }] },
      {},
      /another shop.*"stage"/,
    ],
  ])('%s', (_, member, said, expected, problem) => {
    const { problems, ...rest } = agree({ ...own, ...member }, { ...register, ...said } as Register);
    const waitMs = member.leaseMs === 0 ? 15_000 : fine.coldStartMs;
    expect(rest).toEqual({ ...fine, coldStartMs: waitMs, ...expected });
    if (problem === undefined) expect(problems).toEqual([]);
    else expect(problems.join()).toMatch(problem);
  });
});
