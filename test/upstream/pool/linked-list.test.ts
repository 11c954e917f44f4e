import { expect, it } from 'vitest';
import { type Linked, LinkedList } from '../../../src/upstream/linked-list.ts';

class Member implements Linked<Member> {
  readonly name: string;
  older: Member | undefined;
  newer: Member | undefined;
  list: LinkedList<Member> | undefined;

  constructor(name: string) {
    this.name = name;
  }
}

function start() {
  const list = new LinkedList<Member>();
  const members = [...'abc'].map((name) => new Member(name));
  for (const member of members) list.push(member);
  return { list, members };
}

/** Forwards and backwards, which must say the same. */
function namesOf(list: LinkedList<Member>): string {
  let forwards = '';
  for (let one = list.oldest; one !== undefined; one = one.newer) forwards += one.name;
  let backwards = '';
  for (let one = list.newest; one !== undefined; one = one.older) backwards = one.name + backwards;
  expect(backwards).toBe(forwards);
  expect(list.length).toBe(forwards.length);
  return forwards;
}

it.each([
  [0, 'bc'],
  [1, 'ac'],
  [2, 'ab'],
])('member %i leaves, and the others keep their order', (at, left) => {
  const { list, members } = start();
  const member = members[at] as Member;
  expect(list.remove(member)).toBe(true);
  expect(namesOf(list)).toBe(left);
  expect([member.older, member.newer, member.list]).toEqual([undefined, undefined, undefined]);
});

it('a member of another list, or of none, stays where it is', () => {
  const { list, members } = start();
  expect(new LinkedList<Member>().remove(members[1] as Member)).toBe(false);
  expect(list.remove(new Member('x'))).toBe(false);
  expect(namesOf(list)).toBe('abc');
});

it('gives out the oldest first, until there is none', () => {
  const { list } = start();
  expect([list.shift(), list.shift(), list.shift(), list.shift()].map((one) => one?.name).join()).toBe(
    'a,b,c,',
  );
  expect(namesOf(list)).toBe('');
});
