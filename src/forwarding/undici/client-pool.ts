import type { Socket } from 'node:net';
// The whole package is twice as much code again, loaded at every start.
import Client from 'undici/lib/dispatcher/client.js';
import { type ConnectionFault, openConnection } from '../connection.ts';
import type { EngineOptions } from '../engine.ts';

/** One undici client, which holds one connection at a time. */
export interface UndiciConnection {
  readonly client: Client;
  /** Exchanges that its present socket has begun. */
  exchanges: number;
  socket: Socket | undefined;
  /** Why the socket broke, when it did: undici takes some resets for the end of a body. */
  broken: unknown;
  isIdle: boolean;
}

/** Thrown through undici's `connect`, so that an exchange can tell why it has no connection. */
export class NoConnection extends Error {
  readonly fault: ConnectionFault;

  constructor(fault: ConnectionFault) {
    super(fault.kind, { cause: fault.cause });
    this.fault = fault;
  }
}

/**
 * Undici clients for the one upstream, most recently used first, one connection each: which connection an exchange
 * rides, whether it served one before, and a fresh one on demand are known, as `Pool` would not tell.
 */
export class UndiciClientPool {
  readonly #options: EngineOptions;
  readonly #idle: UndiciConnection[] = [];
  readonly #all = new Set<UndiciConnection>();
  #closing: Promise<void> | undefined;

  constructor(options: EngineOptions) {
    this.#options = options;
  }

  take(fresh: boolean): UndiciConnection {
    if (!fresh) {
      for (let connection = this.#idle.pop(); connection !== undefined; connection = this.#idle.pop()) {
        connection.isIdle = false;
        if (connection.socket !== undefined && !connection.socket.destroyed) return connection;
        this.drop(connection);
      }
    } else if (this.#all.size >= this.#options.connections) {
      const oldest = this.#idle.shift();
      if (oldest !== undefined) this.drop(oldest);
    }
    return this.#create();
  }

  /** The exchange is over and left the connection whole. */
  give(connection: UndiciConnection): void {
    if (this.#closing !== undefined) {
      this.drop(connection);
      return;
    }
    connection.isIdle = true;
    this.#idle.push(connection);
  }

  drop(connection: UndiciConnection): void {
    if (!this.#all.delete(connection)) return;
    if (connection.isIdle) {
      const at = this.#idle.indexOf(connection);
      if (at !== -1) this.#idle.splice(at, 1);
    }
    void connection.client.destroy().catch(() => {});
  }

  get isClosing(): boolean {
    return this.#closing !== undefined;
  }

  close(): Promise<void> {
    for (const connection of this.#idle.splice(0)) this.drop(connection);
    this.#closing ??= Promise.all(
      [...this.#all].map(({ client }) => client.close().catch(() => client.destroy())),
    ).then(() => {});
    return this.#closing;
  }

  #create(): UndiciConnection {
    const { scheme, hostname, port } = this.#options.upstream;
    const host = hostname.includes(':') ? `[${hostname}]` : hostname;
    const idleTimeoutMs = this.#options.idleTimeoutMs ?? 4_000;
    const client = new Client(`${scheme}://${host}:${port}`, {
      connect: (_target, callback) => {
        openConnection(
          this.#options,
          (socket) => {
            this.#adopt(connection, socket);
            callback(null, socket);
          },
          (fault) => callback(new NoConnection(fault), null),
        );
      },
      pipelining: 1,
      allowH2: false,
      // Deadlines are the forwarder's.
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: idleTimeoutMs,
      keepAliveTimeoutThreshold: 1_000,
      maxHeaderSize: this.#options.responseHeadBytes ?? 65_536,
    });
    const connection: UndiciConnection = {
      client,
      exchanges: 0,
      socket: undefined,
      broken: undefined,
      isIdle: false,
    };
    this.#all.add(connection);
    return connection;
  }

  #adopt(connection: UndiciConnection, socket: Socket): void {
    connection.socket = socket;
    connection.exchanges = 0;
    connection.broken = undefined;
    // Before undici's own listeners, which act on it at once.
    socket.on('error', (error) => {
      connection.broken = error;
    });
    socket.once('close', () => {
      if (connection.isIdle) this.drop(connection);
    });
  }
}
