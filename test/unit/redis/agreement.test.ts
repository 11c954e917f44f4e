import { expect, test } from 'vitest';
import { type Member, type Register, agree } from '../../../src/redis/membership.ts';

const carts = 'PATCH /carts/{id}';
const lists = 'PATCH /lists/{id}';
const own: Member = {
  ...{ version: '0.1.0', forms: { oldest: 6, newest: 6 }, owner: 'shop', leaseMs: 15_000 },
  ...{ tracked: [carts], digestKey: 'a' },
};
const register: Register = { isNew: false, form: 6, digestKey: 'a', others: [own] };
const fine = { coldStartMs: 15_000, passesBy: false, refusesTokens: false, refusesAll: false, form: 6 };
/** The register with these other members. */
const others = (...all: readonly Partial<Member>[]) => ({ others: all.map((one) => ({ ...own, ...one })) });
const newer = { version: '0.3.0', forms: { oldest: 7, newest: 8 } };
const untracked = { untracked: [carts] };

/** This member, what the register says, the agreement that differs from `fine`, and the problem. */
type Row = [string, Partial<Member>, Partial<Register>, object, RegExp?];
const rows: Row[] = [
  ['all members are alike', {}, {}, {}],
  ['no other members', {}, others(), {}],
  [
    'another has a longer lease',
    ...([{}, others({ leaseMs: 60_000 })] as const),
    ...([{ coldStartMs: 60_000 }, /lease differs.*15s, 60s/] as const),
  ],
  ['another has a shorter lease', {}, others({ leaseMs: 5_000 }), {}, /lease differs/],
  [
    'another has no lease and tracks nothing',
    ...([{}, others({ leaseMs: 0, tracked: [] })] as const),
    ...([untracked, /does not track PATCH \/carts\/\{id\}/] as const),
  ],
  ['another tracks more', {}, others({ tracked: [carts, lists] }), { passesBy: true }],
  [
    'another tracks only another resource',
    ...([{}, others({ tracked: [lists] })] as const),
    ...([{ ...untracked, passesBy: true }, /does not track/] as const),
  ],
  ['one of two others tracks nothing', {}, others({}, { tracked: [] }), untracked, /does not track/],
  [
    'another tracks one of two resources',
    ...([{ tracked: [carts, lists] }, {}] as const),
    ...([{ untracked: [lists] }, /does not track PATCH \/lists\/\{id\} /] as const),
  ],
  [
    'another has another parameter name, so its records have other keys',
    ...([{}, others({ tracked: ['PATCH /carts/{uuid}'] })] as const),
    ...([{ ...untracked, passesBy: true }, /does not track/] as const),
  ],
  ['nothing is tracked here', { leaseMs: 0, tracked: [] }, {}, { passesBy: true }],
  ['the register has another digest key', {}, { digestKey: 'b' }, { refusesTokens: true }, /digestKey/],
  ['another member has another digest key, the register has ours', {}, others({ digestKey: 'b' }), {}],
  [
    'a newer version knows the form in force',
    ...([{}, others({ ...newer, forms: { oldest: 6, newest: 7 } }), {}] as const),
  ],
  [
    'the form in force is one that this version does not know',
    ...([{}, { form: 7, ...others(newer, {}) }, { refusesAll: true, form: 7 }] as const),
    /^another version of shopward shares this store: 0\.3\.0, and this is 0\.1\.0\./,
  ],
  ['another version does not know the form in force: it refuses, not this one', {}, others(newer), {}],
  ['no digest key here', { digestKey: '' }, { digestKey: 'b' }, {}],
  ['another shop uses the prefix', {}, others({ owner: 'stage' }), {}, /another shop.*"stage"/],
];

test.each<Row>(rows)('%s', (_, member, said, expected, problem) => {
  const { problems, ...rest } = agree({ ...own, ...member }, { ...register, ...said });
  expect(rest).toEqual({ ...fine, untracked: [], ...expected });
  if (problem === undefined) expect(problems).toEqual([]);
  else expect(problems.join()).toMatch(problem);
});
