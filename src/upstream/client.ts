import { FairQueue, LinkedList, shareOf } from '../lib/fair-queue.ts';
import { isolated } from '../lib/faults.ts';
import { Connection, type ConnectionOwner, type OpenSocket } from './connection.ts';
import type {
  ClientOptions,
  UpstreamClient,
  UpstreamExchange,
  UpstreamHandler,
  UpstreamRequest,
} from './port.ts';
import { type CallConnections, UpstreamCall } from './upstream-call.ts';

/** Milliseconds between two checks of the idle connections. */
const sweepMs = 1_000;

const defaultIdleTimeoutMs = 4_000;

/** Milliseconds within which an idle connection is safe for any request, if the upstream does not say how long it keeps one. */
const recentMs = 250;

/** `open`: creates the sockets in tests. */
export function createUpstreamClient(options: ClientOptions, open?: OpenSocket): UpstreamClient {
  return new Client(options, open);
}

/**
 * Keep-alive connections to the upstream, the most recently used first, and the queue in front of them.
 * docs/decisions/upstream-client.md has the states of a connection and the rules of each.
 */
class Client implements UpstreamClient, ConnectionOwner, CallConnections {
  readonly #options: ClientOptions;
  readonly #open: OpenSocket | undefined;
  readonly #queue: FairQueue<UpstreamCall>;
  /** All but the closed ones. */
  readonly #connections = new Set<Connection>();
  readonly #idle = new LinkedList<Connection>();
  /** The call that will get a connection, or the new one that replaces it after its end. */
  readonly #reserved = new Map<Connection, UpstreamCall>();
  /** Number of unreserved connections that are connecting or ending: waiters get these or their replacements. */
  #coming = 0;
  readonly #sweeper: NodeJS.Timeout;
  readonly #closed = Promise.withResolvers<void>();
  #isClosing = false;

  constructor(options: ClientOptions, open: OpenSocket | undefined) {
    this.#options = options;
    this.#open = open;
    const { connections, queueLimit, sharePercent = 100 } = options;
    this.#queue = new FairQueue({
      share: shareOf(connections, sharePercent),
      queueShare: shareOf(queueLimit, sharePercent),
    });
    const sweep = isolated(() => this.#sweep(performance.now()));
    this.#sweeper = setInterval(sweep, sweepMs).unref();
  }

  get queueTimeoutMs(): number {
    return this.#options.queueTimeoutMs;
  }

  get inFlight(): number {
    return this.#queue.active;
  }

  get queued(): number {
    return this.#queue.waiting;
  }

  dispatch(request: UpstreamRequest, handler: UpstreamHandler): UpstreamExchange {
    const call = new UpstreamCall(request, handler, this);
    call.start();
    return call;
  }

  close(): Promise<void> {
    clearInterval(this.#sweeper);
    this.#isClosing = true;
    for (const connection of this.#connections) {
      if (connection.phase !== 'busy') this.#end(connection);
    }
    this.#serve();
    this.#noteClosed();
    return this.#closed.promise;
  }

  /** Gives `call` a connection, at once if a suitable one is idle; or refuses it, if too many wait. */
  enter(call: UpstreamCall): void {
    const isWithinShare = this.#queue.join(call);
    const idle = isWithinShare ? this.#takeIdle(call.isRepeatable) : undefined;
    if (idle !== undefined) {
      this.#queue.begin(call);
      this.#give(idle, call);
      return;
    }
    const hasRoom = this.#queue.push(call);
    this.#serve();
    if (hasRoom && this.#queue.waiting - this.#coming <= this.#options.queueLimit) return;
    call.onConnectionFault('overloaded', undefined);
  }

  /** Sends `call` on a new connection in place of `connection`, which has ended. */
  replace(call: UpstreamCall, connection: Connection): void {
    this.#reserve(connection, call);
    this.#end(connection);
  }

  /** `call` is over; without `isReusable` its connection is closed. */
  leave(call: UpstreamCall, isReusable: boolean): void {
    const { connection } = call;
    this.#queue.leave(call);
    if (connection !== undefined) {
      if (this.#reserved.get(connection) === call) this.#reserve(connection, undefined);
      else if (isReusable) this.#release(connection);
      else this.#end(connection);
    }
    if (!this.#isClosing) this.#serve();
  }

  /** `overloaded` if other calls have all connections, or its sender has used up its share. */
  faultOfWait(call: UpstreamCall): 'connect-timeout' | 'overloaded' {
    return this.#coming === 0 || this.#queue.isAtShare(call) ? 'overloaded' : 'connect-timeout';
  }

  onOpen(connection: Connection): void {
    const { connectionLifetimeMs = Number.POSITIVE_INFINITY } = this.#options;
    // Random, so that connections that were opened together are not replaced together.
    const nowMs = performance.now();
    connection.retireAtMs = nowMs + connectionLifetimeMs * (1 - Math.random() / 4);
    this.#setIdleTimes(connection, nowMs);
    const call = this.#reserved.get(connection);
    this.#reserve(connection, undefined);
    if (call !== undefined) this.#give(connection, call);
    else this.#offer(connection);
  }

  onEnd(connection: Connection): void {
    if (connection.phase === 'idle') this.#end(connection);
    this.#serve();
  }

  onClosed(connection: Connection): void {
    const wasConnecting = connection.phase === 'connecting';
    const call = this.#reserved.get(connection);
    this.#enter(connection, 'closed');
    this.#connections.delete(connection);
    this.#reserved.delete(connection);
    if (call !== undefined) {
      if (wasConnecting || this.#isClosing) this.#refuse(call, connection);
      else this.#connect(call);
    } else if (wasConnecting && this.#queue.ready > this.#coming) {
      // Refuse one waiter at most, and none if another connection is being opened for it.
      const waiter = this.#queue.peek();
      if (waiter !== undefined) this.#refuse(waiter, connection);
    }
    this.#serve();
    this.#noteClosed();
  }

  /** Opens the connections that ready waiters lack. To make room, it closes idle ones, which these waiters could not use. */
  #serve(): void {
    if (this.#isClosing) {
      for (let next = this.#queue.peek(); next !== undefined; next = this.#queue.peek()) {
        next.onConnectionFault('unreachable', new Error('shutting down'));
      }
      return;
    }
    while (this.#queue.ready > this.#coming) {
      if (this.#connections.size < this.#options.connections) this.#connect(undefined);
      else if (this.#idle.oldest !== undefined) this.#end(this.#idle.oldest);
      else return;
    }
  }

  #connect(call: UpstreamCall | undefined): void {
    const connection = new Connection(this.#options, this, this.#open);
    this.#connections.add(connection);
    this.#coming += 1;
    if (call !== undefined) this.#reserve(connection, call);
  }

  #reserve(connection: Connection, call: UpstreamCall | undefined): void {
    if (this.#isComing(connection)) this.#coming -= 1;
    if (call === undefined) this.#reserved.delete(connection);
    else {
      this.#reserved.set(connection, call);
      call.connection = connection;
    }
    if (this.#isComing(connection)) this.#coming += 1;
  }

  #enter(connection: Connection, phase: Connection['phase']): void {
    connection.list?.remove(connection);
    if (this.#isComing(connection)) this.#coming -= 1;
    connection.phase = phase;
    if (this.#isComing(connection)) this.#coming += 1;
  }

  #isComing(connection: Connection): boolean {
    const { phase } = connection;
    if (phase !== 'connecting' && phase !== 'ending') return false;
    return this.#reserved.size === 0 || !this.#reserved.has(connection);
  }

  /** The idle connection that was used last, if it is suitable. */
  #takeIdle(isRepeatable: boolean): Connection | undefined {
    const nowMs = performance.now();
    for (let idle = this.#idle.newest; idle !== undefined; idle = this.#idle.newest) {
      if (isUsable(idle, nowMs)) return isRepeatable || nowMs < idle.recentUntilMs ? idle : undefined;
      this.#end(idle);
    }
    return undefined;
  }

  #give(connection: Connection, call: UpstreamCall): void {
    this.#enter(connection, 'busy');
    connection.exchanges += 1;
    call.onConnection(connection);
  }

  /** A connection that no call uses goes to the next waiter, or becomes idle. */
  #offer(connection: Connection): void {
    const call = this.#queue.shift();
    if (call !== undefined) this.#give(connection, call);
    else {
      this.#enter(connection, 'idle');
      this.#idle.push(connection);
    }
    this.#serve();
  }

  #release(connection: Connection): void {
    const nowMs = performance.now();
    this.#setIdleTimes(connection, nowMs);
    if (this.#isClosing || !isUsable(connection, nowMs)) this.#end(connection);
    else this.#offer(connection);
  }

  #setIdleTimes(connection: Connection, nowMs: number): void {
    const { idleTimeoutMs = defaultIdleTimeoutMs } = this.#options;
    const { saidIdleTimeoutMs } = connection;
    connection.idleUntilMs = nowMs + (saidIdleTimeoutMs ?? idleTimeoutMs);
    connection.recentUntilMs = nowMs + (saidIdleTimeoutMs ?? recentMs);
  }

  #end(connection: Connection): void {
    if (connection.phase !== 'closed') this.#enter(connection, 'ending');
    connection.socket.destroy();
  }

  #refuse(call: UpstreamCall, { isTimedOut, cause }: Connection): void {
    if (isTimedOut) call.onConnectionFault('connect-timeout', undefined);
    else call.onConnectionFault('unreachable', cause ?? new Error('closed while connecting'));
  }

  #sweep(nowMs: number): void {
    for (let idle = this.#idle.oldest; idle !== undefined; idle = this.#idle.oldest) {
      if (isUsable(idle, nowMs)) return;
      this.#end(idle);
    }
  }

  #noteClosed(): void {
    if (this.#isClosing && this.#connections.size === 0) this.#closed.resolve();
  }
}

function isUsable({ socket, idleUntilMs, retireAtMs }: Connection, nowMs: number): boolean {
  return socket.writable && nowMs < idleUntilMs && nowMs < retireAtMs;
}
