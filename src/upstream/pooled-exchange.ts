import { EndOfTurn } from '../lib/end-of-turn.ts';
import { endAlone, isolate } from '../lib/faults.ts';
import type { ConnectionFault, PooledConnection } from './connection.ts';
import type { ConnectionPool, ConnectionWaiter } from './connection-pool.ts';
import type {
  UpstreamEngine,
  UpstreamExchange,
  UpstreamFault,
  UpstreamHandler,
  UpstreamRequest,
} from './engine.ts';
import type { ConnectionNeed } from './pool-state.ts';

const sendings = new EndOfTurn<Pick<PooledExchange, 'send' | 'abort'>>(
  (exchange) => exchange.send(),
  (exchange) => exchange.abort(),
);

/** An engine whose exchanges share a pool. */
export function createPooledEngine<C extends PooledConnection>(
  pool: ConnectionPool<C>,
  createExchange: (request: UpstreamRequest, handler: UpstreamHandler) => PooledExchange<C>,
): UpstreamEngine {
  return {
    dispatch(request, handler) {
      const exchange = createExchange(request, handler);
      exchange.start();
      return exchange;
    },
    get inFlight() {
      return pool.busy;
    },
    get queued() {
      return pool.waiting;
    },
    close: () => pool.close(),
  };
}

/**
 * What one exchange is over every engine: it waits for a connection, asks at its socket whether it may send, is tried
 * once more where a stale connection explains the failure, and tells its handler of one end. An engine adds how a
 * request is written and its response read.
 */
export abstract class PooledExchange<C extends PooledConnection = PooledConnection>
  implements UpstreamExchange, ConnectionWaiter<C>
{
  protected readonly request: UpstreamRequest;
  protected readonly handler: UpstreamHandler;
  protected connection: C | undefined;
  protected isOver = false;
  readonly #pool: ConnectionPool<C>;
  #hadConnection = false;
  #sent = false;
  #retried = false;

  constructor(request: UpstreamRequest, handler: UpstreamHandler, pool: ConnectionPool<C>) {
    this.request = request;
    this.handler = handler;
    this.#pool = pool;
  }

  start(): void {
    this.#watchBody();
    if (!this.isOver) this.#pool.acquire(this, needOf(this.request));
  }

  onConnection(connection: C): void {
    this.connection = connection;
    if (!this.#hadConnection) {
      this.#hadConnection = true;
      try {
        this.handler.onConnection?.();
      } catch (cause) {
        this.fail('internal', cause);
      }
    }
    if (this.isOver) return;
    if (this.request.beforeSend === undefined) sendings.add(this);
    else void this.#prepare(this.request.beforeSend);
  }

  /** The connection may break meanwhile: `send` looks at it, and whoever ends the exchange gives it back. */
  async #prepare(beforeSend: () => Promise<boolean>): Promise<void> {
    const may = await isTrue(beforeSend);
    if (!may) this.fail('not-sent');
    if (!this.isOver) sendings.add(this);
  }

  onConnectionFault({ kind, cause }: ConnectionFault): void {
    this.fail(kind, cause);
  }

  /** The end of the turn in which the connection was given: nobody has a say any more in whether the request leaves. */
  send(): void {
    const { connection } = this;
    if (this.isOver || connection === undefined) return;
    try {
      if (connection.socket.writable) this.transmit(connection);
      else this.loseUnsent(connection);
    } catch (cause) {
      this.fail(this.#sent ? 'internal' : 'not-sent', cause);
    }
  }

  abort(cause?: unknown): void {
    this.fail('aborted', cause);
  }

  abstract resume(): void;

  /** Writes the request, or fails; throws where it cannot be written. */
  protected abstract transmit(connection: C): void;

  /** Takes its hands off the connection and the body, which may go on. */
  protected abstract detach(): void;

  protected abstract get answerBegun(): boolean;

  /** Asked in the turn of the first byte: `false`, and the exchange has failed. */
  protected mayLeave(): boolean {
    try {
      if (this.request.maySend?.() === false) this.fail('not-sent');
      else this.#sent = true;
    } catch (cause) {
      this.fail('not-sent', cause);
    }
    return this.#sent;
  }

  /** It ended while nothing had left: any request may go another way. If it was new, another is no better. */
  protected loseUnsent(connection: C): void {
    if (connection.exchanges > 1) this.#takeNew();
    else this.fail('reset');
  }

  protected fail(kind: UpstreamFault['kind'], cause?: unknown): void {
    if (this.isOver) return;
    const { connection } = this;
    const reusedConnection = connection !== undefined && connection.exchanges > 1;
    const { answerBegun } = this;
    if (kind === 'reset' && reusedConnection && !answerBegun && this.#mayRetry()) {
      this.#retried = true;
      try {
        this.handler.onRetry?.();
        this.#takeNew();
        return;
      } catch (thrown) {
        this.#end({ kind: 'internal', sent: true, reusedConnection, answerBegun, cause: thrown });
        return;
      }
    }
    this.#end({ kind, sent: this.#sent, reusedConnection, answerBegun, cause });
  }

  /** The response is whole. */
  protected succeed(isReusable: boolean): void {
    if (this.isOver) return;
    this.isOver = true;
    const { connection, answerBegun } = this;
    try {
      this.detach();
      if (connection !== undefined) {
        if (isReusable) this.#pool.release(connection);
        else this.#pool.discard(connection);
      }
    } catch (thrown) {
      endAlone(thrown, () => this.#discardConnection(connection));
    }
    try {
      this.handler.onEnd();
    } catch (cause) {
      this.#tell({ kind: 'internal', sent: true, reusedConnection: false, answerBegun, cause });
    }
  }

  #end(fault: UpstreamFault): void {
    this.isOver = true;
    try {
      this.#pool.leave(this);
      this.#drop();
    } catch (thrown) {
      endAlone(thrown, () => this.connection?.socket.destroy());
    }
    this.#tell(fault);
  }

  #tell(fault: UpstreamFault): void {
    const tell = () => this.handler.onFault(fault);
    if (fault.kind === 'internal') endAlone(fault.cause, tell);
    else isolate(tell);
  }

  /** The client's stream is read once there is a connection, and what is not read waits in it; it is not ours to destroy. */
  #watchBody(): void {
    const { body } = this.request;
    if (body === null || Buffer.isBuffer(body)) return;
    const { stream } = body;
    if (stream.destroyed && !stream.readableEnded) {
      this.fail('request-body');
      return;
    }
    stream.once('error', (cause) => this.fail('request-body', cause));
    stream.once('close', () => {
      if (!stream.readableEnded) this.fail('request-body');
    });
  }

  #takeNew(): void {
    this.#drop();
    this.connection = undefined;
    this.#pool.acquire(this, 'new');
  }

  #drop(): void {
    const { connection } = this;
    try {
      this.detach();
    } finally {
      this.#discardConnection(connection);
    }
  }

  #discardConnection(connection: C | undefined): void {
    if (connection !== undefined) this.#pool.discard(connection);
  }

  /** RFC 9110 section 9.2.2: only what is safe and has no body, and once. */
  #mayRetry(): boolean {
    return !this.#retried && isSafeAndEmpty(this.request);
  }
}

/**
 * The race between a request and the end of an idle connection is lost now and then. What is safe and has no body is
 * sent once more; anything else goes where the race cannot be lost.
 */
function needOf(request: UpstreamRequest): ConnectionNeed {
  return isSafeAndEmpty(request) ? 'any' : 'recent';
}

/** It may throw as well as reject. */
async function isTrue(ask: () => Promise<boolean>): Promise<boolean> {
  try {
    return await ask();
  } catch {
    return false;
  }
}

function isSafeAndEmpty({ method, body }: UpstreamRequest): boolean {
  return (method === 'GET' || method === 'HEAD') && body === null;
}
