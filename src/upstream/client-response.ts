import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { CanonicalRequest } from '../http/canonical-request.ts';
import { type FieldList, fieldValue } from '../http/field-list.ts';
import { endResponse, isBodyPending } from '../http/write-response.ts';
import { EndOfTick } from '../lib/end-of-tick.ts';
import { endAlone, isolate } from '../lib/faults.ts';
import { endToEndFields, reasonPhrase } from './response-fields.ts';
import { isBodiless } from './response-parser.ts';

export interface ClientResponseEvents {
  /** The client has read what waited: more may be written. */
  onDrain(): void;
  /** The client left, or did not read for too long, before the end of its response. */
  onGone(): void;
}

export interface ClientPatience {
  /** Milliseconds within which a client must read the rest of a finished response. */
  readonly writeStallTimeoutMs: number;
  /**
   * A client may read nothing for three times this long, in milliseconds; every 4,096 bytes that it takes give back one
   * second. Kernels show progress only after a third of 4 MiB, which takes 22 s at 64 KB/s.
   */
  readonly bodyTimeoutMs: number;
}

const noOctets = Buffer.alloc(0);

/** Longest first chunk of body that waits for the end of the tick, in bytes. */
const smallBytes = 4096;

const pendingHeads = new EndOfTick<ClientResponse>(
  (response) => response.flush(),
  (response) => response.abandon(),
);

/**
 * The only way in which a forwarded response reaches a client. The head waits for the first byte of body, at most until the
 * end of the tick, so that an upstream that breaks at once still leads to a clean 502. A small first chunk waits until the
 * end of the tick: usually it is the whole body, and head and body leave in one write.
 */
export class ClientResponse {
  /** Status that was sent; 0: none yet. */
  status = 0;
  /** Bytes of body that were written. */
  bytes = 0;
  isGone = false;

  readonly #incoming: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #patience: ClientPatience;
  readonly #events: ClientResponseEvents;
  /** Milliseconds for which this client may read nothing: the maximum, and the rest after `#bytesTaken`. */
  readonly #mostMs: number;
  #leftMs: number;
  #bytesTaken = 0;
  #blockedAtMs = 0;
  #head: { status: number; reason: string; fields: FieldList } | undefined;
  #first: Buffer | undefined;
  #stallTimer: NodeJS.Timeout | undefined;
  #ended = false;

  constructor(
    incoming: IncomingMessage,
    response: ServerResponse,
    patience: ClientPatience,
    events: ClientResponseEvents,
  ) {
    this.#incoming = incoming;
    this.#response = response;
    this.#patience = patience;
    this.#mostMs = 3 * patience.bodyTimeoutMs;
    this.#leftMs = this.#mostMs;
    this.#events = events;
    response.on('error', ignore);
    response.on('close', () => this.#onClose());
    if (response.destroyed || response.socket?.destroyed === true) this.isGone = true;
  }

  /** Whether it is too late to send a refusal instead. */
  get isBegun(): boolean {
    return this.status !== 0;
  }

  /** Whether written octets wait for the client to read them. */
  get isBlocked(): boolean {
    return !this.isGone && this.#stallTimer !== undefined;
  }

  /** Interim responses of the upstream (RFC 9110 section 15.2). Shopward itself sends 100, and HTTP/1.0 has no interim responses. */
  inform(status: number, fields: FieldList): void {
    const response = this.#response;
    if (status === 100 || status === 101 || this.isGone || this.isBegun) return;
    if (this.#incoming.httpVersion !== '1.1' || typeof response.writeInformation !== 'function') return;
    response.writeInformation(status, endToEndFields(fields, status));
  }

  /** Writes the head of a 101 and returns the socket; undefined: the client has gone. */
  upgrade(fields: FieldList, { offeredSubprotocol }: CanonicalRequest): Socket | undefined {
    const { socket } = this.#response;
    if (socket === null || this.isGone) return undefined;
    let head = 'HTTP/1.1 101 Switching Protocols\r\n';
    for (let i = 0; i + 1 < fields.length; i += 2) head += `${fields[i]}: ${fields[i + 1]}\r\n`;
    // A browser that has offered subprotocols gives up if none is chosen (RFC 6455 section 4.1, WHATWG WebSockets).
    const isChosen = fieldValue(fields, 'sec-websocket-protocol') !== undefined;
    if (offeredSubprotocol !== undefined && !isChosen)
      head += `Sec-WebSocket-Protocol: ${offeredSubprotocol}\r\n`;
    this.status = 101;
    this.#response.detachSocket(socket);
    socket.write(`${head}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n`, 'latin1');
    return socket;
  }

  /** Begins a response with a body. Its head is sent with the first byte, or alone at the end of the tick. */
  begin(status: number, reason: string, fields: FieldList): void {
    this.#head = { status, reason, fields };
    pendingHeads.add(this);
  }

  /** A whole response. */
  send(status: number, reason: string, fields: FieldList, body?: Buffer): void {
    this.#head = { status, reason, fields };
    this.end(body);
  }

  /** Sends the head if it still waits. */
  flush(): void {
    if (this.#head === undefined || this.isGone) return;
    // `end` follows at once for a response without a body, and sends the head.
    if (isBodiless(this.#incoming.method, this.#head.status)) return;
    const first = this.#takeFirst();
    this.#writeHead();
    // Not flushHeaders(): it writes octets beyond ASCII as UTF-8.
    this.#response.write(first ?? noOctets);
  }

  /**
   * `false`: wait for `onDrain`. A chunk for a client that has gone is dropped. `release` is called when
   * the kernel has the chunk; never if the connection broke, because the chunk may still be read then.
   */
  write(chunk: Buffer, release?: () => void): boolean {
    if (this.isGone) return true;
    this.bytes += chunk.length;
    if (this.#head !== undefined && this.#first === undefined && chunk.length <= smallBytes) {
      this.#first = chunk;
      return true;
    }
    const response = this.#response;
    // At most two chunks wait, whatever their length: each takes hundreds of octets in addition to its own.
    const isWaiting = response.writableLength > 0;
    const first = this.#takeFirst();
    this.#writeHead();
    if (first !== undefined) response.write(first);
    if (!isWaiting) {
      response.write(chunk, release && ((broken) => broken || isolate(release)));
      return true;
    }
    response.write(chunk, (broken) => {
      if (!broken && release !== undefined) isolate(release);
      this.#taken(broken);
    });
    this.#blockedAtMs = performance.now();
    this.#watchStall(this.#earnedMs());
    return false;
  }

  end(chunk?: Buffer): void {
    if (this.isGone) return;
    if (chunk !== undefined) this.bytes += chunk.length;
    const whole = chunk ?? this.#takeFirst();
    this.#writeHead();
    this.#ended = true;
    endResponse(this.#incoming, this.#response, whole, () => {
      if (this.#response.writableLength > 0) this.#watchStall(this.#patience.writeStallTimeoutMs);
    });
  }

  /** Drops the head that waits: another response will be sent. */
  withdraw(): void {
    this.#head = undefined;
    this.bytes -= this.#takeFirst()?.length ?? 0;
  }

  /**
   * Ends the connection after what was written, so that the client sees an incomplete response: by missing bytes of a
   * Content-Length, a missing last chunk, or an immediate reset if only the end of the connection ends the body.
   */
  cut(): void {
    this.withdraw();
    clearTimeout(this.#stallTimer);
    this.isGone = true;
    const response = this.#response;
    const { socket } = response;
    if (socket !== null && this.#incoming.httpVersion === '1.1') {
      this.#stallTimer = setTimeout(() => response.destroy(), this.#patience.writeStallTimeoutMs);
      socket.destroySoon();
      return;
    }
    if (socket !== null && !(socket instanceof TLSSocket)) socket.resetAndDestroy();
    response.destroy();
  }

  /** The response cannot be written: the client sees its connection end, and the exchange learns that the client is gone. */
  abandon(): void {
    this.#response.destroy();
  }

  #takeFirst(): Buffer | undefined {
    const first = this.#first;
    this.#first = undefined;
    return first;
  }

  #writeHead(): void {
    if (this.#head === undefined) return;
    const { status, reason, fields } = this.#head;
    this.#head = undefined;
    this.status = status;
    const response = this.#response;
    // The rest of a request body that was not read must not be taken for the next request.
    if (isBodyPending(this.#incoming)) response.shouldKeepAlive = false;
    const phrase = reasonPhrase(reason);
    if (phrase === undefined) response.writeHead(status, fields as string[]);
    else response.writeHead(status, phrase, fields as string[]);
  }

  /** The kernel has taken the waiting octets. */
  readonly #taken = (broken?: Error | null): void => {
    if (this.#ended) {
      this.#stallTimer?.refresh();
      return;
    }
    clearTimeout(this.#stallTimer);
    this.#stallTimer = undefined;
    if (broken) return;
    this.#leftMs = Math.max(0, this.#leftMs - (performance.now() - this.#blockedAtMs));
    try {
      this.#events.onDrain();
    } catch (fault) {
      endAlone(fault, () => this.abandon());
    }
  };

  /** Adds the time earned since the last call, and returns what is left. */
  #earnedMs(): number {
    const earnedMs = ((this.bytes - this.#bytesTaken) / bytesPerSecond) * 1_000;
    this.#bytesTaken = this.bytes;
    this.#leftMs = Math.min(this.#mostMs, this.#leftMs + earnedMs);
    return this.#leftMs;
  }

  /** The timer runs until `#taken`; for a response that was ended, until all of it was sent. */
  #watchStall(withinMs: number): void {
    this.#stallTimer ??= setTimeout(() => this.#onStall(), withinMs);
  }

  #onStall(): void {
    // A pipelined response may wait for earlier ones, which is not the client's fault.
    if (this.#response.socket === null && !this.#response.writableFinished) {
      this.#stallTimer?.refresh();
      return;
    }
    this.#response.destroy();
  }

  #onClose(): void {
    clearTimeout(this.#stallTimer);
    if (this.isGone || this.#response.writableFinished) return;
    this.isGone = true;
    isolate(() => this.#events.onGone());
  }
}

/** Bytes that give back one second. A client that takes 2 KB/s gets 120 s with the default `limits.bodyTimeout`. */
const bytesPerSecond = 4_096;

function ignore(): void {}
