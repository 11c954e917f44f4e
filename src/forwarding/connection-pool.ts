import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { type ConnectionFault, openConnection } from './connection.ts';
import type { EngineOptions } from './engine.ts';

/** One connected socket to the upstream. */
export interface Connection {
  readonly socket: Socket;
  /** Exchanges that it has begun, the present one included. */
  exchanges: number;
  /** The response that is being read; bytes behind its end are nobody's, and end the connection. */
  response: IncomingMessage | undefined;
  /** Milliseconds that the upstream said it keeps an idle connection (`Keep-Alive: timeout`). */
  idleTimeoutMs: number;
  /** When an idle connection is not used any more; undefined while it is in use. */
  idleUntilMs: number | undefined;
}

const shuttingDown: ConnectionFault = { kind: 'unreachable', cause: new Error('shutting down') };

/** Somebody who wants a connection. */
export interface ConnectionWaiter {
  /** Set when the exchange is over before it had a connection. */
  isOver: boolean;
  onConnection(connection: Connection): void;
  onConnectionFault(fault: ConnectionFault): void;
}

/**
 * Keep-alive connections to the one upstream, most recently used first. Written by hand, because `http.Agent` hands
 * out sockets that are still connecting, cannot be asked for a fresh one, counts connections only after they are
 * made, and keeps an idle socket on which the upstream speaks out of turn (then the next client would be answered
 * with those bytes).
 */
export class ConnectionPool {
  readonly #options: EngineOptions;
  readonly #now: () => number;
  readonly #idle: Connection[] = [];
  readonly #waiting: ConnectionWaiter[] = [];
  readonly #attempts = new Map<ConnectionWaiter, () => void>();
  readonly #sweeper: NodeJS.Timeout;
  #open = 0;
  #closing: PromiseWithResolvers<void> | undefined;

  constructor(options: EngineOptions, now: () => number = () => performance.now()) {
    this.#options = options;
    this.#now = now;
    this.#sweeper = setInterval(() => this.#sweep(), 1_000).unref();
  }

  /** Gives `waiter` a connection: an idle one in this very call, unless it must be `fresh`, or a new one later. */
  acquire(waiter: ConnectionWaiter, fresh: boolean): void {
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
    if (fresh || this.#open < this.#options.connections) this.#connect(waiter);
    else this.#waiting.push(waiter);
  }

  /** Takes back what an exchange left whole (its socket's `free` event). */
  release(connection: Connection): void {
    connection.response = undefined;
    if (connection.socket.destroyed || !connection.socket.writable) return;
    if (this.#closing !== undefined || connection.idleTimeoutMs <= 0) {
      connection.socket.destroy();
      return;
    }
    connection.idleUntilMs = this.#now() + connection.idleTimeoutMs;
    this.#idle.push(connection);
    // Not in this tick: node still takes its listeners off a socket that it has just declared free.
    if (this.#waiting.length > 0) process.nextTick(() => this.#serve());
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

  #takeIdle(): Connection | undefined {
    const now = this.#now();
    for (let connection = this.#idle.pop(); connection !== undefined; connection = this.#idle.pop()) {
      if (connection.socket.writable && (connection.idleUntilMs ?? 0) > now) return connection;
      connection.socket.destroy();
    }
    return undefined;
  }

  #assign(connection: Connection, waiter: ConnectionWaiter): void {
    connection.idleUntilMs = undefined;
    connection.exchanges += 1;
    waiter.onConnection(connection);
  }

  #connect(waiter: ConnectionWaiter): void {
    this.#open += 1;
    const giveUp = openConnection(
      this.#options,
      (socket) => {
        this.#attempts.delete(waiter);
        const connection = this.#adopt(socket);
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

  #adopt(socket: Socket): Connection {
    const connection: Connection = {
      socket,
      exchanges: 0,
      response: undefined,
      idleTimeoutMs: this.#options.idleTimeoutMs ?? 4_000,
      idleUntilMs: undefined,
    };
    const drop = () => {
      const at = this.#idle.indexOf(connection);
      if (at !== -1) this.#idle.splice(at, 1);
      socket.destroy();
    };
    socket.on('data', () => {
      if (connection.idleUntilMs !== undefined || connection.response?.complete === true) drop();
    });
    socket.on('end', () => {
      if (connection.idleUntilMs !== undefined) drop();
    });
    // Errors of a socket in use are node's to report to its request.
    socket.on('error', drop);
    socket.once('close', () => {
      drop();
      this.#closed();
    });
    socket.on('free', () => this.release(connection));
    return connection;
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
      if ((connection.idleUntilMs ?? 0) <= now) connection.socket.destroy();
    }
  }
}
