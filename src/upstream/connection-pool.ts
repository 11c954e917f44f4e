import { endAlone, isolated } from '../lib/faults.ts';
import type { ConnectionFault, PooledConnection } from './connection.ts';
import type { EngineOptions } from './engine.ts';
import { defaultIdleTimeoutMs, IdleTimeout } from './idle-timeout.ts';
import { type ConnectionNeed, type PoolAction, PoolState, type RefusalReason } from './pool-state.ts';

/** Told of a connection, or of why there is none, exactly once. */
export interface ConnectionWaiter<C extends PooledConnection> {
  onConnection(connection: C): void;
  onConnectionFault(fault: ConnectionFault): void;
}

/** Opens a connection and calls back once, never within this call; returns a function that gives the attempt up. */
type Open<C extends PooledConnection> = (
  opened: (connection: C) => void,
  failed: (fault: ConnectionFault) => void,
) => () => void;

type Action<C extends PooledConnection> = PoolAction<C, ConnectionWaiter<C>, ConnectionFault>;

/** Milliseconds between two looks at idle connections. */
const sweepMs = 1_000;

/**
 * Keep-alive connections to the upstream, most recently used first, and the queue before them. Every event goes to
 * `PoolState`, which decides; this class carries out its actions with sockets and timers. `http.Agent` is not used: it
 * hands out sockets that are still connecting, cannot be asked for a new one, counts connections only after they are
 * made, and keeps an idle socket on which the upstream has sent bytes unasked, which the next client would get as its
 * answer.
 */
export class ConnectionPool<C extends PooledConnection> {
  readonly #state: PoolState<C, ConnectionWaiter<C>, ConnectionFault>;
  readonly #openOne: Open<C>;
  readonly #now: () => number;
  readonly #lifetimeMs: number;
  readonly #idleTimeout: IdleTimeout;
  readonly #attempts = new Set<() => void>();
  readonly #sweeper: NodeJS.Timeout;
  readonly #closed = Promise.withResolvers<void>();
  #deadline: NodeJS.Timeout | undefined;
  #isActing = false;

  constructor(options: EngineOptions, open: Open<C>, now: () => number = () => performance.now()) {
    this.#state = new PoolState(options);
    this.#openOne = open;
    this.#now = now;
    this.#lifetimeMs = options.connectionLifetimeMs ?? Number.POSITIVE_INFINITY;
    this.#idleTimeout = new IdleTimeout(options.idleTimeoutMs ?? defaultIdleTimeoutMs);
    this.#sweeper = setInterval(this.#timePassed, sweepMs).unref();
  }

  /** Connections that carry an exchange. */
  get busy(): number {
    return this.#state.busy;
  }

  get waiting(): number {
    return this.#state.waiting;
  }

  /** Gives `waiter` a connection, within this call if an idle one will do, or tells it why there is none. */
  acquire(waiter: ConnectionWaiter<C>, need: ConnectionNeed): void {
    const now = this.#now();
    for (;;) {
      const connection = this.#state.take(need, now);
      if (connection === undefined) break;
      if (connection.socket.writable) {
        this.#act();
        waiter.onConnection(connection);
        return;
      }
      this.#state.lost(connection);
    }
    this.#state.enqueue(waiter, need, now);
    this.#act();
  }

  /** `waiter` hears nothing more. */
  leave(waiter: ConnectionWaiter<C>): void {
    this.#state.leave(waiter);
  }

  /**
   * Takes back a connection whose exchange ended cleanly. It is used again from the next turn of the event loop:
   * surplus bytes of the upstream may arrive in a read of their own (a TLS record), and would answer another request.
   */
  release(connection: C): void {
    if (!connection.socket.writable) return;
    this.#rest(connection);
    this.#state.released(connection, this.#now());
    this.#act();
  }

  /** Ends a connection whose exchange did not end cleanly. */
  discard(connection: C): void {
    this.#state.lost(connection);
    connection.socket.destroy();
    this.#act();
  }

  /** Ends idle connections now and the others after their exchange. */
  close(): Promise<void> {
    clearInterval(this.#sweeper);
    this.#state.shutDown();
    this.#act();
    return this.#closed.promise;
  }

  /**
   * Carries out one action after the other. Actions that a callback causes are carried out by the same loop, not by a
   * nested one.
   */
  #act(): void {
    if (this.#isActing) return;
    this.#isActing = true;
    try {
      for (let action = this.#state.nextAction(); action !== undefined; action = this.#state.nextAction()) {
        try {
          this.#carryOut(action);
        } catch (fault) {
          // A waiter ends what it has begun by itself.
          endAlone(fault);
        }
      }
    } finally {
      this.#isActing = false;
    }
    this.#watchDeadline();
  }

  #carryOut(action: Action<C>): void {
    switch (action.kind) {
      case 'connect':
        this.#connect();
        return;
      case 'assign':
        action.waiter.onConnection(action.connection);
        return;
      case 'refuse':
        action.waiter.onConnectionFault(faultOf(action.reason));
        return;
      case 'end':
        this.#end(action.connection, action.outlived);
        return;
      case 'give-up':
        for (const giveUp of [...this.#attempts]) giveUp();
        return;
      case 'await-turn':
        setImmediate(this.#turnEnded);
        return;
      case 'closed':
        this.#closed.resolve();
    }
  }

  #connect(): void {
    let giveUp: (() => void) | undefined;
    const failed = (fault: ConnectionFault) => {
      if (giveUp !== undefined) this.#attempts.delete(giveUp);
      this.#state.connectFailed(fault);
      this.#act();
    };
    try {
      giveUp = this.#openOne((connection) => {
        if (giveUp !== undefined) this.#attempts.delete(giveUp);
        this.#adopt(connection);
        this.#state.opened(connection);
        this.#act();
      }, failed);
      this.#attempts.add(giveUp);
    } catch (cause) {
      failed({ kind: 'unreachable', cause });
    }
  }

  #adopt(connection: C): void {
    const { socket } = connection;
    // At different times: connections that were opened together would otherwise be replaced together.
    connection.retireAtMs = this.#now() + this.#lifetimeMs * (1 - Math.random() / 4);
    this.#rest(connection);
    // Errors of a socket in use are for its exchange.
    const ended = isolated(
      () => this.#endedByUpstream(connection),
      () => socket.destroy(),
    );
    const closed = isolated(() => {
      this.#state.closed(connection);
      this.#act();
    });
    socket.on('error', () => {
      ended();
      socket.destroy();
    });
    socket.once('end', ended).once('close', closed);
  }

  /** From now on it may be idle. */
  #rest(connection: C): void {
    const now = this.#now();
    const { saidIdleTimeoutMs } = connection;
    connection.idleSinceMs = now;
    connection.recentUntilMs = now + this.#idleTimeout.recentMs(saidIdleTimeoutMs);
    connection.idleUntilMs = now + this.#idleTimeout.usableMs(saidIdleTimeoutMs);
  }

  #end({ socket, idleSinceMs, idleUntilMs }: C, outlived: boolean): void {
    if (outlived && socket.writable) this.#idleTimeout.outlived(idleUntilMs - idleSinceMs);
    socket.destroy();
  }

  #endedByUpstream(connection: C): void {
    if (connection.phase === 'idle') {
      this.#idleTimeout.endedAfter(this.#now() - connection.idleSinceMs);
    } else if (connection.phase !== 'deferred') return;
    this.#state.lost(connection);
    this.#act();
  }

  #watchDeadline(): void {
    const deadlineMs = this.#deadline === undefined ? this.#state.nextDeadlineMs : undefined;
    if (deadlineMs === undefined) return;
    // Its waiter may have been served since, so the timer must not keep the process alive.
    this.#deadline = setTimeout(this.#deadlineReached, Math.max(1, deadlineMs - this.#now())).unref();
  }

  readonly #deadlineReached = (): void => {
    this.#deadline = undefined;
    this.#timePassed();
  };

  readonly #timePassed = isolated((): void => {
    this.#state.timePassed(this.#now());
    this.#act();
  });

  readonly #turnEnded = isolated((): void => {
    this.#state.turnEnded();
    this.#act();
  });
}

function faultOf(reason: RefusalReason<ConnectionFault>): ConnectionFault {
  switch (reason.kind) {
    case 'failed':
      return reason.fault;
    case 'shutting-down':
      return { kind: 'unreachable', cause: new Error('shutting down') };
    default:
      return { kind: reason.kind, cause: undefined };
  }
}
