import type { EngineOptions } from './engine.ts';
import { KeptQueue, type Linked, LinkedList } from './linked-list.ts';

/**
 * The one pool and the one queue in front of the upstream, as pure state: events go in with the time, actions come out,
 * and no socket, timer or callback is in here. docs/decisions/upstream-pool.md has the states and what holds in each;
 * test/upstream/pool plays every order of events against it.
 *
 * The work of an event is constant, but for members that the event takes out of a list for good: there is nothing in
 * here that could be done again and again.
 */
type PoolRules = Pick<EngineOptions, 'connections' | 'queueLimit' | 'queueTimeoutMs'>;

/**
 * Which connections will do: `any`; `recent`: one that was idle for so short a time that the upstream cannot have given
 * it up; `new`: one that has carried nothing yet.
 */
export type ConnectionNeed = 'any' | 'recent' | 'new';

/** What the pool knows of a connection; whoever has the socket adds to it. */
export class PoolMember implements Linked<PoolMember> {
  older: PoolMember | undefined;
  newer: PoolMember | undefined;
  list: LinkedList<PoolMember> | undefined;
  phase: 'busy' | 'deferred' | 'idle' | 'ending' | 'closed' = 'busy';
  /** Exchanges that it has begun, the present one included. */
  exchanges = 0;
  /** From when on it is too old to be used again, whatever it does. */
  retireAtMs = Number.POSITIVE_INFINITY;
  /** When it became idle, and until when it is `recent`, and may be used at all. Set with each release. */
  idleSinceMs = 0;
  recentUntilMs = 0;
  idleUntilMs = 0;
}

/** Why somebody gets no connection; a fault of connecting is passed on as it came. */
export type RefusalReason<F> =
  | { readonly kind: 'overloaded' | 'connect-timeout' | 'shutting-down' }
  | { readonly kind: 'failed'; readonly fault: F };

export type PoolAction<C, W, F> =
  | { readonly kind: 'connect' }
  | { readonly kind: 'assign'; readonly connection: C; readonly waiter: W }
  | { readonly kind: 'refuse'; readonly waiter: W; readonly reason: RefusalReason<F> }
  /** `outlived`: the upstream had kept it for as long as it was to be used. */
  | { readonly kind: 'end'; readonly connection: C; readonly outlived: boolean }
  /** Give up every attempt to connect. */
  | { readonly kind: 'give-up' }
  /** Tell `turnEnded` at the end of this turn of the event loop. */
  | { readonly kind: 'await-turn' }
  /** Shut down, and nothing is open any more. */
  | { readonly kind: 'closed' };

const awaitTurn = { kind: 'await-turn' } as const;

interface Waiting<W> extends Linked<Waiting<W>> {
  readonly waiter: W;
  readonly untilMs: number;
}

export class PoolState<C extends PoolMember, W, F> {
  readonly #rules: PoolRules;
  readonly #idle = new LinkedList<PoolMember>();
  /** Left whole in this turn of the event loop, and used again from the next one on. */
  readonly #deferred = new LinkedList<PoolMember>();
  readonly #waiting = new LinkedList<Waiting<W>>();
  /** Those who need a new connection. */
  readonly #waitingForNew = new LinkedList<Waiting<W>>();
  readonly #places = new Map<W, Waiting<W>>();
  readonly #actions = new KeptQueue<PoolAction<C, W, F>>();
  #connecting = 0;
  #ending = 0;
  /** All connections: being opened, busy, deferred, idle, being ended. */
  #open = 0;
  #isShuttingDown = false;

  constructor(rules: PoolRules) {
    this.#rules = rules;
  }

  get open(): number {
    return this.#open;
  }

  /** Connections that carry an exchange. */
  get busy(): number {
    return this.#open - this.#connecting - this.#ending - this.#deferred.length - this.#idle.length;
  }

  get waiting(): number {
    return this.#places.size;
  }

  /** When somebody will have waited for too long; undefined: nobody waits. */
  get nextDeadlineMs(): number | undefined {
    const a = this.#waiting.oldest?.untilMs;
    const b = this.#waitingForNew.oldest?.untilMs;
    return a === undefined || b === undefined ? (a ?? b) : Math.min(a, b);
  }

  /** What is to be done, in order, each once; events that it brings may come before the next is asked for. */
  nextAction(): PoolAction<C, W, F> | undefined {
    return this.#actions.shift();
  }

  /** The idle connection that was used last, if it will do; it is busy from now on. */
  take(need: ConnectionNeed, nowMs: number): C | undefined {
    if (need === 'new' || this.#isShuttingDown) return undefined;
    for (let idle = this.#idle.newest; idle !== undefined; idle = this.#idle.newest) {
      if (idle.idleUntilMs > nowMs && idle.retireAtMs > nowMs) {
        if (need === 'recent' && idle.recentUntilMs <= nowMs) return undefined;
        this.#idle.remove(idle);
        return this.#begin(idle as C);
      }
      this.#end(idle as C, idle.idleUntilMs <= nowMs);
    }
    return undefined;
  }

  /** `waiter`, for whom `take` had nothing, will be assigned a connection or refused, exactly once, unless it leaves. */
  enqueue(waiter: W, need: ConnectionNeed, nowMs: number): void {
    if (this.#isShuttingDown) {
      this.#actions.push({ kind: 'refuse', waiter, reason: { kind: 'shutting-down' } });
      return;
    }
    const untilMs = nowMs + this.#rules.queueTimeoutMs;
    const place = { waiter, untilMs, older: undefined, newer: undefined, list: undefined };
    this.#places.set(waiter, place);
    (need === 'new' ? this.#waitingForNew : this.#waiting).push(place);
    this.#connectWhereMissing();
    const onTheWay = this.#connecting + this.#ending + this.#deferred.length;
    if (this.#places.size - onTheWay > this.#rules.queueLimit) this.#refuse(place, { kind: 'overloaded' });
  }

  /** Whether `waiter` was still waiting; it hears nothing more. */
  leave(waiter: W): boolean {
    const place = this.#places.get(waiter);
    if (place === undefined) return false;
    this.#forget(place);
    return true;
  }

  /** An attempt to connect has led to `connection`. */
  opened(connection: C): void {
    this.#connecting -= 1;
    if (this.#isShuttingDown) this.#end(connection, false);
    else this.#give(connection, this.#waitingForNew.oldest ?? this.#waiting.oldest);
    this.#connectWhereMissing();
  }

  /** An attempt to connect has failed. At most one waiter is refused: the longest waiting, if nothing else is on its way. */
  connectFailed(fault: F): void {
    this.#connecting -= 1;
    this.#open -= 1;
    const waiter = this.#waitingForNew.oldest ?? this.#waiting.oldest;
    if (waiter !== undefined && this.#missing() > 0) this.#refuse(waiter, { kind: 'failed', fault });
    this.#connectWhereMissing();
    this.#noteClosed();
  }

  /** An exchange has left its connection whole. What else the upstream may send in this turn of the event loop is nobody's. */
  released(connection: C, nowMs: number): void {
    if (connection.phase !== 'busy') return;
    if (this.#isShuttingDown || connection.idleUntilMs <= nowMs || connection.retireAtMs <= nowMs) {
      this.#end(connection, false);
      return;
    }
    connection.phase = 'deferred';
    this.#deferred.push(connection);
    if (this.#deferred.length === 1) this.#actions.push(awaitTurn);
  }

  turnEnded(): void {
    for (let next = this.#deferred.shift(); next !== undefined; next = this.#deferred.shift()) {
      if (this.#mustMakeRoom()) this.#end(next as C, false);
      else this.#give(next as C, this.#waiting.oldest);
    }
    this.#connectWhereMissing();
  }

  /** The connection has ended, or is about to, and may not be used; `closed` follows. */
  lost(connection: C): void {
    if (connection.phase === 'ending' || connection.phase === 'closed') return;
    connection.list?.remove(connection);
    connection.phase = 'ending';
    this.#ending += 1;
    this.#connectWhereMissing();
  }

  /** The connection's descriptor is free. */
  closed(connection: C): void {
    if (connection.phase === 'closed') return;
    this.lost(connection);
    connection.phase = 'closed';
    this.#ending -= 1;
    this.#open -= 1;
    this.#connectWhereMissing();
    this.#noteClosed();
  }

  /** Time passes: who has waited too long is refused, and idle connections end before the upstream ends them. */
  timePassed(nowMs: number): void {
    for (const list of [this.#waiting, this.#waitingForNew]) {
      for (let late = list.oldest; late !== undefined && late.untilMs <= nowMs; late = list.oldest) {
        // Nobody had a connection to give, or the upstream takes none.
        this.#refuse(late, { kind: this.#connecting > 0 ? 'connect-timeout' : 'overloaded' });
      }
    }
    for (let idle = this.#idle.oldest; idle !== undefined; idle = this.#idle.oldest) {
      if (idle.idleUntilMs > nowMs && idle.retireAtMs > nowMs) return;
      this.#end(idle as C, idle.idleUntilMs <= nowMs);
    }
  }

  /** Idle connections end now and the others after their exchange; whoever waits is refused. */
  shutDown(): void {
    if (this.#isShuttingDown) return;
    this.#isShuttingDown = true;
    for (const list of [this.#idle, this.#deferred]) {
      for (let one = list.oldest; one !== undefined; one = list.oldest) this.#end(one as C, false);
    }
    for (const list of [this.#waiting, this.#waitingForNew]) {
      for (let one = list.oldest; one !== undefined; one = list.oldest) {
        this.#refuse(one, { kind: 'shutting-down' });
      }
    }
    if (this.#connecting > 0) this.#actions.push({ kind: 'give-up' });
    this.#noteClosed();
  }

  /** Whether who has waited longest needs a new connection, and there is no room for one. */
  #mustMakeRoom(): boolean {
    const first = this.#waitingForNew.oldest;
    if (first === undefined || this.#open < this.#rules.connections) return false;
    if (this.#connecting + this.#ending >= this.#waitingForNew.length) return false;
    return first.untilMs <= (this.#waiting.oldest?.untilMs ?? Number.POSITIVE_INFINITY);
  }

  /** A connection that nobody uses goes to who waits, or to the idle ones. */
  #give(connection: C, place: Waiting<W> | undefined): void {
    if (place === undefined) {
      connection.phase = 'idle';
      this.#idle.push(connection);
      return;
    }
    this.#forget(place);
    this.#actions.push({ kind: 'assign', connection: this.#begin(connection), waiter: place.waiter });
  }

  #begin(connection: C): C {
    connection.phase = 'busy';
    connection.exchanges += 1;
    return connection;
  }

  #end(connection: C, outlived: boolean): void {
    connection.list?.remove(connection);
    connection.phase = 'ending';
    this.#ending += 1;
    this.#actions.push({ kind: 'end', connection, outlived });
  }

  #refuse(place: Waiting<W>, reason: RefusalReason<F>): void {
    this.#forget(place);
    this.#actions.push({ kind: 'refuse', waiter: place.waiter, reason });
  }

  #forget(place: Waiting<W>): void {
    this.#places.delete(place.waiter);
    place.list?.remove(place);
  }

  /** Waiters to whom no connection is on its way. */
  #missing(): number {
    const forUsed = Math.max(0, this.#waiting.length - this.#deferred.length);
    return this.#waitingForNew.length + forUsed - this.#connecting;
  }

  /**
   * Opens what is missing, within the bound. Idle connections, which are there beside waiters only where these could
   * not use them, make room; so does each connection that is being ended.
   */
  #connectWhereMissing(): void {
    if (this.#isShuttingDown || this.#places.size === 0) return;
    let missing = this.#missing();
    for (; missing > 0 && this.#open < this.#rules.connections; missing -= 1) {
      this.#open += 1;
      this.#connecting += 1;
      this.#actions.push({ kind: 'connect' });
    }
    for (missing -= this.#ending; missing > 0 && this.#idle.oldest !== undefined; missing -= 1) {
      this.#end(this.#idle.oldest as C, false);
    }
  }

  #noteClosed(): void {
    if (this.#isShuttingDown && this.#open === 0) this.#actions.push({ kind: 'closed' });
  }
}
