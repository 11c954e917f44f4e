import { describe, expect, it } from 'vitest';
import { PoolMember, PoolState } from '../../../src/upstream/pool-state.ts';

class Member extends PoolMember {
  readonly name: string;

  constructor(name: string, idleUntilMs = 1_000, retireAtMs = 2_000) {
    super();
    this.name = name;
    this.idleUntilMs = idleUntilMs;
    this.recentUntilMs = 100;
    this.retireAtMs = retireAtMs;
  }
}

function open(rules: Partial<{ connections: number; queueLimit: number; queueTimeoutMs: number }> = {}) {
  const state = new PoolState<Member, string, string>({
    ...{ connections: 2, queueLimit: 10, queueTimeoutMs: 50 },
    ...rules,
  });
  /** What is to be done by now. */
  const todo = () => {
    const all: string[] = [];
    for (let action = state.nextAction(); action !== undefined; action = state.nextAction()) {
      if (action.kind === 'assign') all.push(`${action.waiter} gets ${action.connection.name}`);
      else if (action.kind === 'refuse') {
        const { reason } = action;
        all.push(`${action.waiter} refused: ${reason.kind === 'failed' ? reason.fault : reason.kind}`);
      } else if (action.kind === 'end')
        all.push(`end ${action.connection.name}${action.outlived ? ', outlived' : ''}`);
      else all.push(action.kind);
    }
    return all;
  };
  /** A connection that was made for `waiter`, who has it. */
  const busy = (member: Member, waiter = 'somebody') => {
    state.enqueue(waiter, 'any', 0);
    state.opened(member);
    todo();
    return member;
  };
  /** One that is idle. */
  const idle = (member: Member) => {
    busy(member);
    state.released(member, 0);
    state.turnEnded();
    todo();
    return member;
  };
  return { state, todo, busy, idle };
}

describe('a connection', () => {
  it('is made for who waits, and used again from the next turn on', () => {
    const { state, todo } = open();
    state.enqueue('a', 'any', 0);
    expect([todo(), state.waiting, state.open, state.busy]).toEqual([['connect'], 1, 1, 0]);
    const one = new Member('one');
    state.opened(one);
    expect([todo(), state.waiting, state.busy, one.exchanges]).toEqual([['a gets one'], 0, 1, 1]);
    state.released(one, 0);
    state.released(one, 0);
    expect([todo(), state.busy, state.take('any', 0)]).toEqual([['await-turn'], 0, undefined]);
    state.turnEnded();
    expect([todo(), state.take('any', 0)?.name, one.exchanges, state.busy]).toEqual([[], 'one', 2, 1]);
  });

  it('that was used last is used first', () => {
    const { state, idle } = open();
    const [one] = [idle(new Member('one'))];
    state.take('any', 0);
    idle(new Member('two'));
    state.released(one as Member, 0);
    state.turnEnded();
    expect([state.take('any', 0)?.name, state.take('any', 0)?.name]).toEqual(['one', 'two']);
  });

  it.each([
    [999, ['one', []]],
    [1_000, [undefined, ['end one, outlived']]],
  ] as const)('that is idle until 1000 is asked for at %i', (now, expected) => {
    const { state, todo, idle } = open();
    idle(new Member('one'));
    expect([state.take('any', now)?.name, todo()]).toEqual(expected);
  });

  it('that is too old is ended, whatever it does, and did not outlive its idle time', () => {
    const { state, todo, idle, busy } = open({ connections: 3 });
    idle(new Member('one', 5_000, 500));
    expect([state.take('any', 500), todo()]).toEqual([undefined, ['end one']]);
    const two = busy(new Member('two', 5_000, 500));
    state.released(two, 500);
    expect(todo()).toEqual(['end two']);
    const three = busy(new Member('three', 400));
    state.released(three, 400);
    expect(todo()).toEqual(['end three']);
  });

  it('is recent for as long as it says, and stays idle after that', () => {
    const { state, idle, todo } = open();
    idle(new Member('one'));
    expect([state.take('new', 0), state.take('recent', 100), todo()]).toEqual([undefined, undefined, []]);
    expect(state.take('recent', 99)?.name).toBe('one');
  });

  it('that was lost is counted until its descriptor is free', () => {
    const { state, busy, todo } = open({ connections: 1 });
    const one = busy(new Member('one'));
    state.enqueue('b', 'any', 0);
    expect(todo()).toEqual([]);
    state.lost(one);
    state.lost(one);
    expect([todo(), state.open, state.busy]).toEqual([[], 1, 0]);
    state.closed(one);
    state.closed(one);
    expect([todo(), state.open]).toEqual([['connect'], 1]);
  });
});

describe('who waits', () => {
  it('beyond the limit is refused; those for whom a connection is on its way do not count', () => {
    const { state, todo } = open({ connections: 1, queueLimit: 1 });
    for (const waiter of ['a', 'b', 'c']) state.enqueue(waiter, 'any', 0);
    expect([todo(), state.waiting]).toEqual([['connect', 'c refused: overloaded'], 2]);
  });

  it.each([
    ['while one is being made', true, 'connect-timeout'],
    ['while all are busy', false, 'overloaded'],
  ])('is refused at the end of its time: %s', (_, isConnecting, kind) => {
    const { state, todo, busy } = open({ connections: 1 });
    if (!isConnecting) busy(new Member('one'));
    state.enqueue('a', 'any', 10);
    state.enqueue('b', 'new', 20);
    expect(state.nextDeadlineMs).toBe(60);
    todo();
    state.timePassed(59);
    expect(todo()).toEqual([]);
    state.timePassed(60);
    expect([todo(), state.nextDeadlineMs]).toEqual([[`a refused: ${kind}`], 70]);
    state.timePassed(70);
    expect([todo(), state.nextDeadlineMs]).toEqual([[`b refused: ${kind}`], undefined]);
  });

  it('longest is refused when nothing is on its way any more, and alone', () => {
    const { state, todo } = open();
    for (const waiter of ['a', 'b']) state.enqueue(waiter, 'any', 0);
    expect(todo()).toEqual(['connect', 'connect']);
    state.connectFailed('ECONNREFUSED');
    // Another attempt follows for who is left.
    expect(todo()).toEqual(['a refused: ECONNREFUSED']);
    state.connectFailed('ECONNREFUSED');
    expect([todo(), state.open]).toEqual([['b refused: ECONNREFUSED'], 0]);
  });

  it('and leaves hears nothing more', () => {
    const { state, todo } = open();
    state.enqueue('a', 'any', 0);
    expect([state.leave('a'), state.leave('a'), state.waiting]).toEqual([true, false, 0]);
    state.opened(new Member('one'));
    expect([todo(), state.take('any', 0)?.name]).toEqual([['connect'], 'one']);
  });

  it('for a new connection is given room by one idle one, and no more', () => {
    const { state, todo, idle } = open();
    const one = idle(new Member('one'));
    state.take('any', 0);
    idle(new Member('two'));
    state.released(one, 0);
    state.turnEnded();
    todo();
    state.enqueue('a', 'new', 0);
    expect(todo()).toEqual(['end two']);
    state.enqueue('b', 'any', 0);
    expect(todo()).toEqual(['end one']);
  });

  it('longest for a new one is given room by one that was just left', () => {
    const { state, todo, busy } = open({ connections: 1 });
    const one = busy(new Member('one'));
    state.enqueue('a', 'new', 0);
    state.enqueue('b', 'any', 1);
    state.released(one, 1);
    state.turnEnded();
    expect(todo()).toEqual(['await-turn', 'end one']);
    state.closed(one);
    const two = new Member('two');
    state.opened(two);
    expect(todo()).toEqual(['connect', 'a gets two']);
  });

  it('a request that any connection may serve gets the free one if it has waited longer', () => {
    const { state, todo, busy } = open({ connections: 1 });
    const one = busy(new Member('one'));
    state.enqueue('a', 'any', 0);
    state.enqueue('b', 'new', 1);
    state.released(one, 1);
    state.turnEnded();
    expect(todo()).toEqual(['await-turn', 'a gets one']);
  });
});

it('a shutdown refuses who waits, ends what is idle now and the rest after its exchange', () => {
  const { state, todo, busy, idle } = open({ connections: 3 });
  const one = idle(new Member('one'));
  state.take('any', 0);
  const two = idle(new Member('two'));
  busy(new Member('three'));
  state.enqueue('a', 'new', 0);
  // To make room for it.
  expect(todo()).toEqual(['end two']);
  state.closed(two);
  state.enqueue('b', 'any', 0);
  expect(todo()).toEqual(['connect']);
  state.shutDown();
  state.shutDown();
  expect(todo()).toEqual(['b refused: shutting-down', 'a refused: shutting-down', 'give-up']);
  state.enqueue('c', 'any', 0);
  expect([todo(), state.take('any', 0)]).toEqual([['c refused: shutting-down'], undefined]);
  const late = new Member('late');
  state.opened(late);
  state.released(one, 0);
  expect(todo()).toEqual(['end late', 'end one']);
  for (const member of [late, one]) state.closed(member);
  expect(todo()).toEqual([]);
});

it('and is over when the last connection is closed, or at once', () => {
  const { state, todo, idle } = open();
  const one = idle(new Member('one'));
  state.shutDown();
  expect(todo()).toEqual(['end one']);
  state.closed(one);
  expect(todo()).toEqual(['closed']);
  const other = open();
  other.state.shutDown();
  expect(other.todo()).toEqual(['closed']);
});
