import type { IncomingMessage, ServerResponse } from 'node:http';
import { TLSSocket } from 'node:tls';
import type { FieldList } from '../http/field-list.ts';
import { endResponse, isBodyPending } from '../http/write-response.ts';
import { EndOfTurn } from '../lib/end-of-turn.ts';
import { endAlone, isolate } from '../lib/faults.ts';
import { endToEndFields, reasonPhrase } from './response-fields.ts';
import { isBodiless } from './response-framing.ts';

export interface ClientResponseEvents {
  /** What was held back has gone out: more may be written. */
  onDrain(): void;
  /** The client left, or did not read for too long, before the end of its response. */
  onGone(): void;
}

const noOctets = Buffer.alloc(0);

/** Bytes of a first piece of body that may wait. */
const smallBytes = 4096;

const heldHeads = new EndOfTurn<ClientResponse>(
  (response) => response.flush(),
  (response) => response.abandon(),
);

/**
 * The one way in which a forwarded response reaches a client. The head is held until there is a byte to go with it
 * (or the body keeps us waiting), so that an upstream that breaks at once is still a clean 502. A small first piece of
 * the body waits with it for the rest of the tick: mostly it is the whole body, and then all goes out in one piece.
 */
export class ClientResponse {
  /** Status that was sent; 0 while none was. */
  status = 0;
  /** Bytes of body handed over. */
  bytes = 0;
  isGone = false;

  readonly #incoming: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #stallTimeoutMs: number;
  readonly #events: ClientResponseEvents;
  #head: { status: number; reason: string; fields: FieldList } | undefined;
  #first: Buffer | undefined;
  #stallTimer: NodeJS.Timeout | undefined;
  #ended = false;

  constructor(
    incoming: IncomingMessage,
    response: ServerResponse,
    stallTimeoutMs: number,
    events: ClientResponseEvents,
  ) {
    this.#incoming = incoming;
    this.#response = response;
    this.#stallTimeoutMs = stallTimeoutMs;
    this.#events = events;
    response.on('error', ignore);
    response.on('close', () => this.#onClose());
    if (response.destroyed || response.socket?.destroyed === true) this.isGone = true;
  }

  /** Whether a refusal can no longer take the response's place. */
  get isBegun(): boolean {
    return this.status !== 0;
  }

  /** Whether what was written waits for the client to take it. */
  get isBlocked(): boolean {
    return !this.isGone && this.#stallTimer !== undefined;
  }

  /** 1xx of the upstream (RFC 9110 section 15.2); 100 is ours to give, and HTTP/1.0 knows none. */
  inform(status: number, fields: FieldList): void {
    const response = this.#response;
    if (status === 100 || status === 101 || this.isGone || this.isBegun) return;
    if (this.#incoming.httpVersion !== '1.1' || typeof response.writeInformation !== 'function') return;
    response.writeInformation(status, endToEndFields(fields, status));
  }

  /** The head of a body to come: sent with its first byte, or alone if that is not there at once. */
  begin(status: number, reason: string, fields: FieldList): void {
    this.#head = { status, reason, fields };
    heldHeads.add(this);
  }

  /** A whole response. */
  send(status: number, reason: string, fields: FieldList, body?: Buffer): void {
    this.#head = { status, reason, fields };
    this.end(body);
  }

  /** Sends the head if it is still held back. */
  flush(): void {
    if (this.#head === undefined || this.isGone) return;
    // What has no body is whole with its head, and about to be sent.
    if (isBodiless(this.#incoming.method, this.#head.status)) return;
    const first = this.#takeFirst();
    this.#writeHead();
    // Not flushHeaders(): it writes octets beyond ASCII as UTF-8.
    this.#response.write(first ?? noOctets);
  }

  /**
   * `false`: wait for `onDrain`. A client that has gone swallows everything. `release` is called when the kernel has
   * the chunk; never when the connection broke, since who still reads it is then unknown.
   */
  write(chunk: Buffer, release?: () => void): boolean {
    if (this.isGone) return true;
    this.bytes += chunk.length;
    if (this.#head !== undefined && this.#first === undefined && chunk.length <= smallBytes) {
      this.#first = chunk;
      return true;
    }
    const response = this.#response;
    // Two pieces wait at most, whatever their length: each takes hundreds of octets beside its own while it does.
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
    this.#watchStall();
    return false;
  }

  end(chunk?: Buffer): void {
    if (this.isGone) return;
    if (chunk !== undefined) this.bytes += chunk.length;
    const whole = chunk ?? this.#takeFirst();
    this.#writeHead();
    this.#ended = true;
    endResponse(this.#incoming, this.#response, whole, () => {
      if (this.#response.writableLength > 0) this.#watchStall();
    });
  }

  /** The head is held back no more, and was never sent: something else will be. */
  withdraw(): void {
    this.#head = undefined;
    this.bytes -= this.#takeFirst()?.length ?? 0;
  }

  /**
   * Ends the connection so that the client sees that its response is not whole: missing bytes of a Content-Length, a
   * missing last chunk, or a reset where only the end of the connection ends the body.
   */
  cut(): void {
    this.withdraw();
    clearTimeout(this.#stallTimer);
    this.isGone = true;
    const socket = this.#response.socket;
    const isFramed = this.#incoming.httpVersion === '1.1';
    if (socket !== null && !isFramed && !(socket instanceof TLSSocket)) socket.resetAndDestroy();
    this.#response.destroy();
  }

  /** It cannot be written: its client sees that, and the exchange hears that nobody waits for it any more. */
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
    // The rest of a request body that nobody wants must not be read as the next request.
    if (isBodyPending(this.#incoming)) response.shouldKeepAlive = false;
    const phrase = reasonPhrase(reason);
    if (phrase === undefined) response.writeHead(status, fields as string[]);
    else response.writeHead(status, phrase, fields as string[]);
  }

  /** The kernel has what waited. */
  readonly #taken = (broken?: Error | null): void => {
    if (this.#ended) {
      this.#stallTimer?.refresh();
      return;
    }
    clearTimeout(this.#stallTimer);
    this.#stallTimer = undefined;
    if (broken) return;
    try {
      this.#events.onDrain();
    } catch (fault) {
      endAlone(fault, () => this.abandon());
    }
  };

  /** Until `#taken`; of a response that was ended, until it has left. */
  #watchStall(): void {
    this.#stallTimer ??= setTimeout(() => this.#onStall(), this.#stallTimeoutMs);
  }

  #onStall(): void {
    // A pipelined response without its turn yet is not the client's fault.
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

function ignore(): void {}
