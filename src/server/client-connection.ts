import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { RejectionName } from '../http/rejection.ts';
import { stopParserWhen } from '../http/node-http.ts';
import { endLingering } from '../http/write-response.ts';
import { isolated } from '../lib/faults.ts';
import { PerTick } from '../lib/per-tick.ts';
import type { ConnectionSlot, ConnectionSlots } from './in-flight.ts';

interface Pair {
  readonly incoming: IncomingMessage;
  readonly response: ServerResponse;
}

export interface Handled {
  /** The response, or the connection, has ended. */
  ended(): void;
}

/** What is known about octets that are not a request. */
export interface MalformedHead {
  /** The broken rule, as a stable word. */
  readonly reason: string;
  readonly method?: string | undefined;
  readonly target?: string | undefined;
}

type Broken = Readonly<{ why: RejectionName; head: MalformedHead }>;

export interface ClientConnectionOptions {
  /**
   * A request whose head was read. With `Expect: 100-continue` nothing was sent yet: the handler sends the interim
   * response once every check has passed.
   */
  handle(incoming: IncomingMessage, response: ServerResponse): Handled | undefined;
  readonly slots?: Pick<ConnectionSlots, 'slotOf' | 'busy' | 'idle'>;
  /** Octets that are not a request: the callee writes the answer and ends the socket. */
  rejectMalformed(why: RejectionName, socket: Duplex, head?: MalformedHead): void;
}

/**
 * Maximum number of pipelined requests that may wait for the current one, and of fields of all of them, since a field
 * takes 100 bytes. Beyond these limits the connection gets its answers and is closed.
 */
const maxWaiting = 16;
const maxWaitingFields = 512;

/** Maximum number of requests of all connections that begin in one tick of the event loop; each takes some 50 microseconds. */
export const beginnings = new PerTick(64);

/** Octets after the last request that may wait; they are read and dropped. */
const surplusBytes = 1_048_576;

/** Milliseconds for which a connection stays open after a response that did not announce the close. */
const lingerMs = 1_000;

/**
 * One connection of a client. Its requests are handled one after the other, even if several came at once (pipelining, RFC
 * 9112 section 9.3.2). While one waits, reading pauses. Octets that are not a request are answered in order: an immediate
 * answer would be written into a response that is being sent.
 */
export class ClientConnection {
  readonly #socket: Socket;
  readonly #options: ClientConnectionOptions;
  readonly #slot: ConnectionSlot | undefined;
  readonly #waiting: Pair[] = [];
  #current: Pair | undefined;
  #handled: Handled | undefined;
  /** Why reading has stopped: octets that are not a request, or more requests than may wait. */
  #stopped: Broken | 'full' | undefined;
  #readUntil = 0;
  #draining = false;
  #ending = false;
  #isUpgraded = false;

  constructor(socket: Socket, options: ClientConnectionOptions) {
    this.#socket = socket;
    this.#options = options;
    this.#slot = options.slots?.slotOf(socket);
    // Node resumes the socket after each request and each response.
    socket.on('resume', isolated(this.#pauseReading));
    stopParserWhen(socket, () => this.#isFull());
  }

  get isIdle(): boolean {
    return this.#current === undefined && !this.#isUpgraded;
  }

  /** The socket belongs to a handshake, then to a WebSocket: until it ends, it is not closed to make room. */
  upgrade(): void {
    this.#isUpgraded = true;
    this.#options.slots?.busy(this.#slot);
    const idle = isolated(() => this.#options.slots?.idle(this.#slot));
    this.#socket.once('finish', idle);
  }

  /** A response that its handler has ended, but that has not left the socket yet. */
  get unsent(): ServerResponse | undefined {
    return this.#current?.response.writableEnded === true ? this.#current.response : undefined;
  }

  take(incoming: IncomingMessage, response: ServerResponse): void {
    if (this.#stopped !== undefined) return;
    if (this.#current === undefined) this.#begin({ incoming, response });
    else if (this.#isFull()) this.stopAsFull();
    else {
      this.#waiting.push({ incoming, response });
      this.#pauseReading();
    }
  }

  readonly #pauseReading = (): void => {
    if (this.#waiting.length === 0 || this.#stopped === 'full') return;
    this.#socket.pause();
    // `pause()` of a paused stream emits no event, so Node would keep reading: emit it here.
    this.#socket.emit('pause');
  };

  #isFull(): boolean {
    if (this.#waiting.length === maxWaiting) return true;
    let names = 0;
    for (const { incoming } of this.#waiting) names += incoming.rawHeaders.length / 2;
    return names >= maxWaitingFields;
  }

  /**
   * More requests came than may wait. The waiting ones are answered, the last one with `Connection: close`; the client must
   * send the others again (RFC 9112 section 9.3.2). Further octets are read and dropped, so that the end of the connection
   * is noticed.
   */
  stopAsFull(): void {
    const socket = this.#socket;
    if (this.#stopped === undefined) {
      this.#stopped = 'full';
      this.#readUntil = socket.bytesRead + surplusBytes;
      this.drain();
      socket.destroySoon = () => endLingering(socket);
      socket.resume();
    } else if (socket.bytesRead > this.#readUntil) socket.pause();
  }

  /** Reading has failed: the requests read so far are answered, then this refusal is written, and the connection ends. */
  breakOff(why: RejectionName, head: MalformedHead): void {
    if (this.#stopped !== undefined) return;
    this.#stopped = { why, head };
    this.#socket.pause();
    beginnings.run(this.#refuse);
  }

  /** From now on every answer says `Connection: close`. A request that still arrives is answered. */
  drain(): void {
    this.#draining = true;
    if (this.#current !== undefined) this.#markIfLast(this.#current);
  }

  end(): void {
    this.#ending = true;
    if (this.isIdle) this.#socket.destroy();
  }

  #begin(pair: Pair): void {
    this.#current = pair;
    this.#options.slots?.busy(this.#slot);
    pair.response.on('close', this.#ended);
    this.#markIfLast(pair);
    beginnings.run(this.#handle);
  }

  /** A request that had to wait may be gone: its connection has ended, or its body was refused. */
  readonly #handle = isolated(
    () => {
      if (this.#current === undefined || !this.#socket.writable) return;
      const { incoming, response } = this.#current;
      this.#handled = this.#options.handle(incoming, response);
    },
    () => this.#socket.destroy(),
  );

  /** After a response with `Connection: close` Node closes the connection, even if requests wait. */
  #markIfLast({ response }: Pair): void {
    if (this.#draining && this.#waiting.length === 0) response.shouldKeepAlive = false;
  }

  readonly #ended = isolated(
    () => this.#goOn(),
    () => this.#socket.destroy(),
  );

  #goOn(): void {
    const ended = this.#current;
    this.#current = undefined;
    this.#handled?.ended();
    this.#handled = undefined;
    if (!this.#socket.writable) {
      this.#waiting.length = 0;
      // While the end of the connection is awaited, it may be closed to make room.
      this.#options.slots?.idle(this.#slot);
      return;
    }
    const next = this.#waiting.shift();
    if (next !== undefined) {
      // The rest of the last request's body may still arrive.
      if (this.#waiting.length === 0 && this.#stopped === undefined) this.#socket.resume();
      this.#begin(next);
      if (this.#stopped !== undefined) beginnings.run(this.#refuse);
    } else if (this.#stopped === 'full') this.#socket.destroySoon();
    else if (this.#stopped === undefined) {
      this.#options.slots?.idle(this.#slot);
      this.#socket.resume();
      if (this.#ending) this.#endSoon();
    } else if (ended?.incoming.complete === false) {
      // The malformed octets are in the body of a request that was already answered.
      this.#socket.destroy();
    } else beginnings.run(this.#refuse);
  }

  /** The response did not announce the close, so a request that the client sends right away is still answered. */
  #endSoon(): void {
    const end = isolated(() => {
      if (this.isIdle) this.#socket.end(() => this.#socket.destroy());
    });
    setTimeout(end, lingerMs).unref();
  }

  /** If the last request's own body is malformed, the refusal is its answer, unless its response has begun. */
  readonly #refuse = isolated(
    () => {
      const broken = this.#stopped;
      if (typeof broken !== 'object' || this.#waiting.length > 0 || !this.#socket.writable) return;
      const { incoming, response } = this.#current ?? {};
      if (incoming?.complete === true || response?.headersSent === true) return;
      const { why, head } = broken;
      // The malformed octets are in the body of a request whose head was read.
      const known = incoming ? { ...head, method: incoming.method, target: incoming.url } : head;
      this.#options.rejectMalformed(why, this.#socket, known);
    },
    () => this.#socket.destroy(),
  );
}
