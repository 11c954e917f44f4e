import { describe, expect, it } from 'vitest';
import { FairQueue, QueueMember } from '../../../src/lib/fair-queue.ts';

class Named extends QueueMember {
  readonly name: string;

  constructor(name: string, address: string, subject?: string) {
    super({ address, subject });
    this.name = name;
  }
}

function open(connections: number, queueLimit = 100) {
  const queue = new FairQueue<Named>({ share: connections / 2, queueShare: queueLimit / 2 });
  const ask = (name: string, address: string, subject?: string) => {
    const member = new Named(name, address, subject);
    if (queue.join(member)) queue.begin(member);
    else queue.push(member);
    return member;
  };
  const wait = (name: string, address: string, subject?: string) => {
    const member = new Named(name, address, subject);
    queue.join(member);
    return { member, hasRoom: queue.push(member) };
  };
  return { queue, ask, wait };
}

describe('the queue in front of the connections', () => {
  it('serves addresses in turn, and the waiters of one address in their order', () => {
    const { queue, wait } = open(100);
    for (const name of ['a1', 'a2', 'a3', 'a4']) wait(name, 'a');
    for (const name of ['b1', 'b2']) wait(name, 'b');
    wait('c1', 'c');
    const served = Array.from({ length: 8 }, () => queue.shift()?.name);
    expect(served).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3', 'a4', undefined]);
  });

  it('gives an address at most its share; a member that leaves makes room for the next waiter', () => {
    const { queue, ask, wait } = open(4);
    const [first] = [ask('a1', 'a'), ask('a2', 'a')];
    const third = ask('a3', 'a');
    wait('b1', 'b');
    expect([queue.active, queue.waiting, queue.ready, queue.isAtShare(third)]).toEqual([2, 2, 1, true]);
    expect([queue.shift()?.name, queue.shift()]).toEqual(['b1', undefined]);
    queue.leave(first as Named);
    expect([queue.ready, queue.shift()?.name]).toEqual([1, 'a3']);
  });

  it('gives a subject no more than its share, from however many addresses', () => {
    const { queue, ask } = open(4);
    const members = ['a', 'b', 'c', 'd'].map((address) => ask(`${address}1`, address, 'one'));
    expect([queue.active, queue.waiting, queue.ready]).toEqual([2, 2, 0]);
    queue.leave(members[2] as Named);
    queue.leave(members[0] as Named);
    expect([queue.ready, queue.shift()?.name, queue.shift()]).toEqual([1, 'd1', undefined]);
  });

  it('gives an address no more than its share, however many subjects it has', () => {
    const { queue, ask } = open(4);
    for (let i = 0; i < 9; i += 1) ask(`${i}`, 'a', `s${i}`);
    expect([queue.active, queue.waiting, queue.ready]).toEqual([2, 7, 0]);
  });

  it('gives an address and a subject no more than their share of the queue', () => {
    const { wait } = open(4, 4);
    expect(['1', '2', '3'].map((name) => wait(name, 'a').hasRoom)).toEqual([true, true, false]);
    expect(['b', 'c', 'd'].map((address) => wait('x', address, 'one').hasRoom)).toEqual([true, true, false]);
  });

  it('members that have left no longer count, in any state, even if they leave twice', () => {
    const { queue, ask, wait } = open(4);
    const members = [
      ask('a1', 'a', 'one'),
      ask('a2', 'a', 'one'),
      ask('b1', 'b', 'one'),
      wait('c', 'c').member,
    ];
    for (const member of [...members, ...members]) queue.leave(member);
    expect([queue.active, queue.waiting, queue.ready, queue.shift()]).toEqual([0, 0, 0, undefined]);
    expect([ask('a3', 'a', 'one').state, ask('a4', 'a', 'one').state]).toEqual(['active', 'active']);
  });
});
