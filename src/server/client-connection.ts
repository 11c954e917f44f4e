import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { RejectionName } from '../http/rejection.ts';
import { endAlone, isolated } from '../lib/faults.ts';
import type { ConnectionPlaces } from './connection-places.ts';

/** One request of a connection, with its response. */
interface Pair {
  readonly incoming: IncomingMessage;
  readonly response: ServerResponse;
}

/** A request that its handler has taken. */
export interface Handled {
  /** Its response is over, or its connection. */
  ended(): void;
}

/** What is known of octets that are not a request. */
export interface MalformedHead {
  /** Which rule it broke: a stable word. */
  readonly reason: string;
  readonly method?: string | undefined;
  readonly target?: string | undefined;
  /** Its `Accept`, if a head was read. */
  readonly accept?: string | undefined;
}

/** Requests that wait on all connections of a listener together: each holds 1.5 KiB. */
interface Waiting {
  count: number;
  readonly max: number;
}

interface Broken {
  readonly why: RejectionName;
  readonly head: MalformedHead;
}

export interface ClientConnectionOptions {
  handle(incoming: IncomingMessage, response: ServerResponse): Handled | undefined;
  readonly waiting: Waiting;
  /** Told when the connection begins a request, and when it has none in progress. */
  readonly places?: Pick<ConnectionPlaces, 'busy' | 'idle'>;
  /** Octets that are not a request: the callee writes the answer and ends the socket. */
  rejectMalformed(why: RejectionName, socket: Duplex, head?: MalformedHead): void;
}

/**
 * More requests than fit into one read of node's (64 KiB), which is parsed to its end even while the socket is paused.
 */
const maxWaiting = 4096;

/** Milliseconds for which a connection stays open after a response that promised to keep it. */
const lingerMs = 1_000;

/**
 * One connection of a client. Its requests are handled one after the other, even if several came at once (pipelining,
 * RFC 9112 section 9.3.2), so that at most one of them is in progress. Octets that are not a request are answered in
 * their turn, too: an earlier answer would land inside a response that is being sent.
 */
export class ClientConnection {
  readonly #socket: Duplex;
  readonly #options: ClientConnectionOptions;
  readonly #waiting: Pair[] = [];
  #current: Pair | undefined;
  #handled: Handled | undefined;
  /** Why nothing more is read of this connection. */
  #broken: Broken | undefined;
  #draining = false;
  #ending = false;
  #isBusy = false;

  constructor(socket: Duplex, options: ClientConnectionOptions) {
    this.#socket = socket;
    this.#options = options;
  }

  get isIdle(): boolean {
    return this.#current === undefined;
  }

  /** A response that was ended by its handler, and has not left the socket yet. */
  get unsent(): ServerResponse | undefined {
    return this.#current?.response.writableEnded === true ? this.#current.response : undefined;
  }

  take(incoming: IncomingMessage, response: ServerResponse): void {
    if (this.#broken !== undefined) return;
    if (this.#current === undefined) this.#begin({ incoming, response });
    else if (this.#waiting.length === maxWaiting) this.breakOff('overloaded', { reason: 'pipelined' });
    else if (this.#options.waiting.count >= this.#options.waiting.max) {
      // Node keeps what it has parsed until the connection ends. Whoever pipelines has to be ready to send again (RFC
      // 9112 section 9.3.2).
      this.#socket.destroy();
    } else {
      this.#options.waiting.count += 1;
      this.#waiting.push({ incoming, response });
      this.#socket.pause();
    }
  }

  /**
   * Nothing more can be read: the requests that were read are finished, then this refusal is written, and the
   * connection ends.
   */
  breakOff(why: RejectionName, head: MalformedHead): void {
    if (this.#broken !== undefined) return;
    this.#broken = { why, head };
    this.#socket.pause();
    this.#endIfDue();
  }

  /** No more requests are wanted: every answer says so. A request that comes nevertheless is answered. */
  drain(): void {
    this.#draining = true;
    if (this.#current !== undefined) this.#markIfLast(this.#current);
  }

  /** Ends the connection as soon as no request is in progress. */
  end(): void {
    this.#ending = true;
    if (this.isIdle) this.#socket.destroy();
  }

  #begin(pair: Pair): void {
    this.#current = pair;
    const { incoming, response } = pair;
    if (!this.#isBusy) this.#options.places?.busy(this.#socket);
    this.#isBusy = true;
    response.on('close', this.#ended);
    this.#markIfLast(pair);
    if (this.#waiting.length > 0) setImmediate(() => this.#holdReading());
    this.#handled = this.#options.handle(incoming, response);
  }

  /** Node closes the connection after a response that says so, even if requests wait. */
  #markIfLast({ response }: Pair): void {
    if (this.#draining && this.#waiting.length === 0) response.shouldKeepAlive = false;
  }

  /** Node reads on by itself after each response. */
  #holdReading(): void {
    if (this.#waiting.length > 0) this.#socket.pause();
  }

  readonly #ended = (): void => {
    try {
      this.#goOn();
    } catch (fault) {
      endAlone(fault, () => this.#socket.destroy());
    }
  };

  #goOn(): void {
    const ended = this.#current;
    this.#current = undefined;
    this.#handled?.ended();
    this.#handled = undefined;
    if (!this.#socket.writable) {
      this.#options.waiting.count -= this.#waiting.length;
      this.#waiting.length = 0;
      return;
    }
    const next = this.#waiting.shift();
    if (next !== undefined) {
      this.#options.waiting.count -= 1;
      this.#begin(next);
      this.#endIfDue();
    } else if (this.#broken === undefined) {
      this.#isBusy = false;
      this.#options.places?.idle(this.#socket);
      this.#socket.resume();
      if (this.#ending) this.#endSoon();
    } else if (ended?.incoming.complete === false) {
      // It broke in the body of a request that has had its answer.
      this.#socket.destroy();
    } else this.#end(this.#broken);
  }

  /** The response did not say that it is the last one, so a request that its client sends at once is still answered. */
  #endSoon(): void {
    const end = isolated(() => {
      if (this.isIdle) this.#socket.end(() => this.#socket.destroy());
    });
    setTimeout(end, lingerMs).unref();
  }

  /** If the last request broke in its own body, the refusal is its answer, unless its response has begun. */
  #endIfDue(): void {
    const broken = this.#broken;
    if (broken === undefined || this.#waiting.length > 0) return;
    const current = this.#current;
    if (current === undefined || !(current.incoming.complete || current.response.headersSent))
      this.#end(broken);
  }

  #end({ why, head }: Broken): void {
    const { incoming } = this.#current ?? {};
    // It broke in the body of a request whose head was read.
    const known = incoming
      ? { ...head, method: incoming.method, target: incoming.url, accept: incoming.headers.accept }
      : head;
    this.#options.rejectMalformed(why, this.#socket, known);
  }
}
