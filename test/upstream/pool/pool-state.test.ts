import assert from 'node:assert/strict';
import fc from 'fast-check';
import { it } from 'vitest';
import {
  type ConnectionNeed,
  type PoolAction,
  PoolMember,
  PoolState,
} from '../../../src/upstream/pool-state.ts';

/** Everything that can happen to a pool; numbers choose among those whom it can happen to. */
type Event =
  | { readonly kind: 'acquire'; readonly need: ConnectionNeed }
  | { readonly kind: 'release' | 'abort' | 'close' | 'leave' | 'open' | 'fail'; readonly which: number }
  | { readonly kind: 'turn' | 'shut-down' }
  | { readonly kind: 'time'; readonly ms: number };

const chosen = (...kinds: ('release' | 'abort' | 'close' | 'leave' | 'open' | 'fail')[]) =>
  fc.record({ kind: fc.constantFrom(...kinds), which: fc.nat(1000) });

const eventArbitrary: fc.Arbitrary<Event> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('acquire' as const),
      need: fc.constantFrom('any', 'any', 'recent', 'new'),
    }),
  },
  { weight: 8, arbitrary: chosen('release', 'open') },
  { weight: 5, arbitrary: chosen('abort', 'close', 'leave', 'fail') },
  { weight: 5, arbitrary: fc.constant({ kind: 'turn' as const }) },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('time' as const), ms: fc.constantFrom(1, 3, 10, 40) }),
  },
) as fc.Arbitrary<Event>;

const rulesArbitrary = fc.record({
  connections: fc.integer({ min: 1, max: 4 }),
  queueLimit: fc.nat(5),
  queueTimeoutMs: fc.constantFrom(5, 50),
});

const idleMs = 20;
const recentMs = 5;

class Member extends PoolMember {
  /** Its socket still takes up a descriptor. */
  isOpen = true;
}

interface Waiter {
  readonly need: ConnectionNeed;
  answers: number;
  hasLeft: boolean;
}

/**
 * A pool among made-up sockets. After each event it checks what must hold in every state; `steps` counts the work that
 * was done, so that no order of events can make it more than so much an event.
 */
class Stage {
  readonly state: PoolState<Member, Waiter, 'refused'>;
  readonly rules: { readonly connections: number; readonly queueLimit: number };
  readonly members = new Set<Member>();
  readonly waiters = new Set<Waiter>();
  readonly carrying = new Map<Member, Waiter>();
  connecting = 0;
  isTurnAwaited = false;
  isShuttingDown = false;
  timesClosed = 0;
  now = 0;
  events = 0;
  steps = 0;

  constructor(rules: { connections: number; queueLimit: number; queueTimeoutMs: number }) {
    this.rules = rules;
    this.state = new PoolState(rules);
  }

  play(event: Event): void {
    this.events += 1;
    const told = this.#happen(event);
    if (event.kind === 'fail') assert.ok(told <= 1);
    this.#check();
  }

  /** Ends whatever is going on; then everybody must have been answered. */
  finish(): void {
    this.play({ kind: 'shut-down' });
    while (this.connecting > 0) this.play({ kind: 'fail', which: 0 });
    for (let i = 0; this.members.size > 0 && i < 100; i++) this.play({ kind: 'close', which: 0 });
    assert.equal(this.timesClosed, 1);
    for (const { answers, hasLeft } of this.waiters) assert.equal(answers, hasLeft ? 0 : 1);
  }

  #happen(event: Event): number {
    const { state } = this;
    switch (event.kind) {
      case 'acquire': {
        const waiter: Waiter = { need: event.need, answers: 0, hasLeft: false };
        this.waiters.add(waiter);
        const taken = state.take(event.need, this.now);
        if (taken === undefined) state.enqueue(waiter, event.need, this.now);
        else this.#assign(taken, waiter);
        break;
      }
      case 'release': {
        const member = pick([...this.carrying.keys()], event.which);
        if (member === undefined) return 0;
        this.carrying.delete(member);
        this.#rest(member);
        state.released(member, this.now);
        break;
      }
      case 'abort': {
        const member = pick([...this.carrying.keys()], event.which);
        if (member === undefined) return 0;
        this.carrying.delete(member);
        state.lost(member);
        break;
      }
      case 'close': {
        const member = pick([...this.members], event.which);
        if (member === undefined) return 0;
        this.members.delete(member);
        this.carrying.delete(member);
        member.isOpen = false;
        state.closed(member);
        break;
      }
      case 'leave': {
        const waiter = pick([...this.waiters].filter(isWaiting), event.which);
        if (waiter === undefined) return 0;
        assert.equal(state.leave(waiter), true);
        assert.equal(state.leave(waiter), false);
        waiter.hasLeft = true;
        break;
      }
      case 'open': {
        if (this.connecting === 0) return 0;
        this.connecting -= 1;
        const member = new Member();
        member.retireAtMs = this.now + 60;
        this.members.add(member);
        this.#rest(member);
        state.opened(member);
        break;
      }
      case 'fail':
        if (this.connecting === 0) return 0;
        this.connecting -= 1;
        state.connectFailed('refused');
        break;
      case 'turn':
        if (!this.isTurnAwaited) return 0;
        this.isTurnAwaited = false;
        state.turnEnded();
        break;
      case 'time':
        this.now += event.ms;
        state.timePassed(this.now);
        break;
      case 'shut-down':
        this.isShuttingDown = true;
        state.shutDown();
    }
    return this.#carryOut();
  }

  /** How many heard that connecting failed. */
  #carryOut(): number {
    let told = 0;
    for (let action = this.state.nextAction(); action !== undefined; action = this.state.nextAction()) {
      this.steps += 1;
      if (this.#do(action)) told += 1;
    }
    return told;
  }

  #do(action: PoolAction<Member, Waiter, 'refused'>): boolean {
    switch (action.kind) {
      case 'connect':
        this.connecting += 1;
        return false;
      case 'assign':
        if (action.waiter.need === 'new') assert.equal(action.connection.exchanges, 1);
        this.#assign(action.connection, action.waiter);
        return false;
      case 'refuse':
        assert.equal(action.waiter.hasLeft, false);
        action.waiter.answers += 1;
        return action.reason.kind === 'failed';
      case 'end':
        assert.equal(this.carrying.has(action.connection), false);
        return false;
      case 'await-turn':
        assert.equal(this.isTurnAwaited, false);
        this.isTurnAwaited = true;
        return false;
      case 'closed':
        this.timesClosed += 1;
        return false;
      case 'give-up':
        return false;
    }
  }

  #assign(member: Member, waiter: Waiter): void {
    assert.deepEqual([member.isOpen, member.phase, this.carrying.has(member)], [true, 'busy', false]);
    assert.equal(waiter.hasLeft, false);
    waiter.answers += 1;
    this.carrying.set(member, waiter);
  }

  #rest(member: Member): void {
    member.idleSinceMs = this.now;
    member.recentUntilMs = this.now + recentMs;
    member.idleUntilMs = this.now + idleMs;
  }

  #check(): void {
    const { state, members, rules } = this;
    const waiting = [...this.waiters].filter(isWaiting);
    // Never more than N, those that are being opened or closed included.
    assert.ok(members.size + this.connecting <= rules.connections);
    assert.equal(state.open, members.size + this.connecting);
    assert.equal(state.busy, this.carrying.size);
    assert.equal(state.waiting, waiting.length);
    // Nobody twice.
    for (const { answers } of this.waiters) assert.ok(answers <= 1);
    const phases = Object.groupBy(members, ({ phase }) => phase);
    const idle = (phases.idle ?? []).filter((one) => one.idleUntilMs > this.now && one.retireAtMs > this.now);
    const onTheWay = this.connecting + (phases.ending ?? []).length + (phases.deferred ?? []).length;
    if ((phases.deferred ?? []).length > 0) assert.equal(this.isTurnAwaited, true);
    // Nobody waits while a connection that would do rests.
    if (idle.length > 0)
      assert.deepEqual(
        waiting.filter(({ need }) => need === 'any'),
        [],
      );
    if (waiting.length > 0 && !this.isShuttingDown) {
      // Nobody waits for nothing: something will come, or everything is in use.
      assert.equal(onTheWay > 0 || this.carrying.size === rules.connections, true);
    }
    assert.ok(waiting.length - onTheWay <= rules.queueLimit);
    // Each waiter and each connection has few things done to it, and each event brings few of either.
    assert.ok(this.steps <= 4 * this.events);
  }
}

function isWaiting({ answers, hasLeft }: Waiter): boolean {
  return answers === 0 && !hasLeft;
}

function pick<T>(all: readonly T[], which: number): T | undefined {
  return all[which % Math.max(1, all.length)];
}

it('holds in every order of what can happen', () => {
  fc.assert(
    fc.property(rulesArbitrary, fc.array(eventArbitrary, { maxLength: 120 }), (rules, events) => {
      const stage = new Stage(rules);
      for (const event of events) stage.play(event);
      stage.finish();
    }),
    { numRuns: 3_000 },
  );
});
