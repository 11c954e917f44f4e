import type { Socket } from 'node:net';
import { type FieldList, fieldValue } from '../request/field-list.ts';
import type { ConnectionFault } from './connection.ts';
import type { EngineOptions } from './engine.ts';

/** One connected socket to the upstream. */
export interface Connection {
  readonly socket: Socket;
  /** Exchanges that it has begun, the present one included. */
  exchanges: number;
  /** Milliseconds that the upstream said it keeps an idle connection (`Keep-Alive: timeout`). */
  idleTimeoutMs: number;
  /** When an idle connection is not used any more; 0 while it is in use. */
  idleUntilMs: number;
}

/** Milliseconds for which an idle connection is kept when the upstream does not say. */
export const defaultIdleTimeoutMs = 4_000;

/** `Keep-Alive: timeout=5`: a second less, so that a request and the upstream's FIN do not cross on the way. */
export function idleTimeoutSaid(fields: FieldList): number | undefined {
  const said = fieldValue(fields, 'keep-alive');
  const seconds = said === undefined ? undefined : /(?:^|[,;\s])timeout\s*=\s*"?(\d{1,6})/i.exec(said)?.[1];
  return seconds === undefined ? undefined : Math.min(Number(seconds) * 1000 - 1000, 600_000);
}

const shuttingDown: ConnectionFault = { kind: 'unreachable', cause: new Error('shutting down') };

/** Somebody who wants a connection. */
export interface ConnectionWaiter<C extends Connection> {
  /** Set when the exchange is over before it had a connection. */
  readonly isOver: boolean;
  onConnection(connection: C): void;
  onConnectionFault(fault: ConnectionFault): void;
}

/** Opens a connection and calls back once; returns what gives the attempt up. */
export type Open<C extends Connection> = (
  opened: (connection: C) => void,
  failed: (fault: ConnectionFault) => void,
) => () => void;

/**
 * Keep-alive connections to the one upstream, most recently used first. Written by hand, because `http.Agent` hands
 * out sockets that are still connecting, cannot be asked for a fresh one, counts connections only after they are
 * made, and keeps an idle socket on which the upstream speaks out of turn (then the next client would be answered
 * with those bytes).
 */
export class ConnectionPool<C extends Connection> {
  readonly #options: Pick<EngineOptions, 'connections'>;
  readonly #openOne: Open<C>;
  readonly #now: () => number;
  readonly #idle: C[] = [];
  /** Left whole in this turn of the event loop, and idle from the next one. */
  readonly #resting: C[] = [];
  readonly #waiting: ConnectionWaiter<C>[] = [];
  readonly #attempts = new Map<ConnectionWaiter<C>, () => void>();
  readonly #sweeper: NodeJS.Timeout;
  #open = 0;
  #closing: PromiseWithResolvers<void> | undefined;

  constructor(
    options: Pick<EngineOptions, 'connections'>,
    open: Open<C>,
    now: () => number = () => performance.now(),
  ) {
    this.#options = options;
    this.#openOne = open;
    this.#now = now;
    this.#sweeper = setInterval(() => this.#sweep(), 1_000).unref();
  }

  /** Gives `waiter` a connection: an idle one in this very call, unless it must be `fresh`, or a new one later. */
  acquire(waiter: ConnectionWaiter<C>, fresh: boolean): void {
    if (this.#closing !== undefined) {
      waiter.onConnectionFault(shuttingDown);
      return;
    }
    const connection = fresh ? undefined : this.#takeIdle();
    if (connection !== undefined) {
      this.#assign(connection, waiter);
      return;
    }
    // An idle connection that may not be used makes room for the new one.
    if (fresh && this.#open >= this.#options.connections) this.#idle.shift()?.socket.destroy();
    const isOneToCome = this.#resting.length > this.#waiting.length;
    if (fresh || (this.#open < this.#options.connections && !isOneToCome)) this.#connect(waiter);
    else this.#waiting.push(waiter);
  }

  /**
   * Takes back what an exchange left whole. It is used again in the next turn of the event loop: what the upstream sent
   * behind the answer may come in a read of its own (a TLS record), and would answer somebody else's request.
   */
  release(connection: C): void {
    if (connection.socket.destroyed || !connection.socket.writable) return;
    if (this.#closing !== undefined || connection.idleTimeoutMs <= 0) {
      connection.socket.destroy();
      return;
    }
    connection.idleUntilMs = this.#now() + connection.idleTimeoutMs;
    if (this.#resting.push(connection) === 1) setImmediate(() => this.#haveRested());
  }

  /** Ends idle connections now and the others after their exchange. */
  close(): Promise<void> {
    if (this.#closing !== undefined) return this.#closing.promise;
    clearInterval(this.#sweeper);
    this.#closing = Promise.withResolvers();
    for (const connection of this.#idle.splice(0)) connection.socket.destroy();
    for (const giveUp of [...this.#attempts.values()]) giveUp();
    for (const waiter of this.#waiting.splice(0)) {
      if (!waiter.isOver) waiter.onConnectionFault(shuttingDown);
    }
    if (this.#open === 0) this.#closing.resolve();
    return this.#closing.promise;
  }

  #haveRested(): void {
    for (const connection of this.#resting.splice(0)) {
      if (this.#closing !== undefined) connection.socket.destroy();
      else if (connection.socket.writable) this.#idle.push(connection);
    }
    this.#serve();
  }

  #takeIdle(): C | undefined {
    const now = this.#now();
    for (let connection = this.#idle.pop(); connection !== undefined; connection = this.#idle.pop()) {
      if (connection.socket.writable && connection.idleUntilMs > now) return connection;
      connection.socket.destroy();
    }
    return undefined;
  }

  #assign(connection: C, waiter: ConnectionWaiter<C>): void {
    connection.idleUntilMs = 0;
    connection.exchanges += 1;
    waiter.onConnection(connection);
  }

  #connect(waiter: ConnectionWaiter<C>): void {
    this.#open += 1;
    const giveUp = this.#openOne(
      (connection) => {
        this.#attempts.delete(waiter);
        this.#adopt(connection);
        if (waiter.isOver) this.release(connection);
        else this.#assign(connection, waiter);
      },
      (fault) => {
        this.#attempts.delete(waiter);
        this.#closed();
        if (!waiter.isOver) waiter.onConnectionFault(fault);
      },
    );
    this.#attempts.set(waiter, giveUp);
  }

  #adopt(connection: C): void {
    const { socket } = connection;
    // Errors of a socket in use are for its exchange.
    socket.on('error', () => socket.destroy());
    socket.once('close', () => {
      const at = this.#idle.indexOf(connection);
      if (at !== -1) this.#idle.splice(at, 1);
      this.#closed();
    });
  }

  #closed(): void {
    this.#open -= 1;
    if (this.#closing !== undefined) {
      if (this.#open === 0) this.#closing.resolve();
      return;
    }
    if (this.#waiting.length > 0) process.nextTick(() => this.#serve());
  }

  #serve(): void {
    while (this.#waiting.length > 0) {
      if (this.#idle.length === 0 && this.#open >= this.#options.connections) return;
      const waiter = this.#waiting.shift();
      if (waiter !== undefined && !waiter.isOver) this.acquire(waiter, false);
    }
  }

  #sweep(): void {
    const now = this.#now();
    for (const connection of [...this.#idle]) {
      if (connection.idleUntilMs <= now) connection.socket.destroy();
    }
  }
}
