import type { Socket } from 'node:net';
import { EndOfTurn } from '../../event-loop/end-of-turn.ts';
import type { ConnectionFault } from '../connection.ts';
import { type ConnectionPool, type ConnectionWaiter, idleTimeoutSaid } from '../connection-pool.ts';
import type { UpstreamExchange, UpstreamFault, UpstreamHandler, UpstreamRequest } from '../engine.ts';
import { type BodySink, pumpBody } from '../request-body-pump.ts';
import type { LlhttpConnection, ResponseReader } from './connection.ts';
import { requestHead } from './request-head.ts';
import type { ResponseHead, ResponseParser } from './response-parser.ts';

export type LlhttpPool = ConnectionPool<LlhttpConnection>;

/** A body up to this long leaves in one piece with its head. */
const copiedBytes = 4096;

const sendings = new EndOfTurn<LlhttpExchange>(
  (exchange) => exchange.send(),
  (exchange) => exchange.abort(),
);

/** One request and its response on one connection. */
export class LlhttpExchange implements UpstreamExchange, ConnectionWaiter<LlhttpConnection>, ResponseReader {
  isOver = false;
  readonly #request: UpstreamRequest;
  readonly #handler: UpstreamHandler;
  readonly #pool: LlhttpPool;
  #connection: LlhttpConnection | undefined;
  #stopBody: (() => void) | undefined;
  #sent = false;
  #isWritten = false;
  #answerBegun = false;

  constructor(request: UpstreamRequest, handler: UpstreamHandler, pool: LlhttpPool) {
    this.#request = request;
    this.#handler = handler;
    this.#pool = pool;
  }

  start(): void {
    this.#watchBody();
    if (!this.isOver) this.#pool.acquire(this, this.#request.freshConnection === true);
  }

  onConnection(connection: LlhttpConnection): void {
    this.#connection = connection;
    sendings.add(this);
  }

  /** The end of the turn in which the connection was given: nobody has a say any more in whether the request leaves. */
  send(): void {
    const connection = this.#connection;
    if (this.isOver || connection === undefined) return;
    try {
      const head = requestHead(this.#request);
      if (connection.socket.destroyed || !connection.socket.writable) this.#fail('reset');
      else if (this.#request.maySend?.() === false) this.#fail('not-sent');
      else {
        this.#sent = true;
        connection.begin(this, this.#request.method === 'HEAD');
        this.#write(head, connection);
      }
    } catch (cause) {
      this.#fail('not-sent', cause);
    }
  }

  onConnectionFault({ kind, cause }: ConnectionFault): void {
    this.#fail(kind, cause);
  }

  onPiece(response: ResponseParser, piece: Buffer, isKept: boolean): void {
    this.#answerBegun = true;
    try {
      this.#take(response, piece, isKept);
    } catch (cause) {
      this.#fail('reset', cause);
    }
  }

  onClosed(response: ResponseParser | undefined, cause?: unknown): void {
    response?.finish();
    if (response?.isComplete === true) this.#complete(response);
    else this.#fail('reset', cause ?? response?.fault);
  }

  resume(): void {
    if (!this.isOver) this.#connection?.socket.resume();
  }

  abort(): void {
    this.#fail('aborted');
  }

  #write(head: string, { socket }: LlhttpConnection): void {
    const { body } = this.#request;
    if (body !== null && !Buffer.isBuffer(body)) {
      socket.write(head, 'latin1');
      const sink = body.length === undefined ? chunkedSink(socket) : plainSink(socket);
      this.#stopBody = pumpBody(body.stream, body.length, sink, {
        onWritten: () => this.#written(),
        onBroken: (cause) => this.#fail('request-body', cause),
      });
      return;
    }
    if (!Buffer.isBuffer(body)) socket.write(head, 'latin1');
    else if (body.length <= copiedBytes) socket.write(head + body.toString('latin1'), 'latin1');
    else {
      socket.cork();
      socket.write(head, 'latin1');
      socket.write(body);
      socket.uncork();
    }
    this.#written();
  }

  #written(): void {
    this.#isWritten = true;
    const socket = this.#connection?.socket;
    if (this.#handler.onSent === undefined || socket === undefined) return;
    // The kernel may not have taken all of it yet.
    if (socket.writableLength === 0) this.#tellSent();
    else
      socket.write('', (broken) => {
        if (!broken) this.#tellSent();
      });
  }

  #tellSent(): void {
    if (!this.isOver) this.#handler.onSent?.();
  }

  /** What the piece held, in its order; the handler may end the exchange at any step. */
  #take(response: ResponseParser, piece: Buffer, isKept: boolean): void {
    const handler = this.#handler;
    for (const { status, fields } of response.informational) {
      if (!this.isOver) handler.onInformational?.(status, fields);
    }
    const { head, bodyStart, bodyEnd } = response;
    if (head !== undefined && !this.isOver) this.#takeHead(head);
    let mayGoOn = true;
    if (bodyEnd > bodyStart && !this.isOver) {
      const body = piece.subarray(bodyStart, bodyEnd);
      mayGoOn = handler.onData(isKept ? body : Buffer.from(body));
    }
    if (this.isOver) return;
    if (response.fault !== undefined) this.#fail('malformed', response.fault);
    else if (response.isComplete) this.#complete(response);
    else if (!mayGoOn) this.#connection?.socket.pause();
  }

  #takeHead({ status, reason, fields }: ResponseHead): void {
    const connection = this.#connection;
    if (connection !== undefined) {
      connection.idleTimeoutMs = idleTimeoutSaid(fields) ?? connection.idleTimeoutMs;
    }
    this.#handler.onHead(status, reason, fields);
  }

  #complete(response: ResponseParser): void {
    if (this.isOver) return;
    this.isOver = true;
    const connection = this.#connection;
    connection?.leave();
    if (!this.#isWritten) this.#stopBody?.();
    if (connection !== undefined) {
      // An answer that came before the whole request had left: what is not sent yet never will be.
      const isSent = this.#isWritten && connection.socket.writableLength === 0;
      if (isSent && response.isReusable) this.#pool.release(connection);
      else connection.socket.destroy();
    }
    this.#handler.onEnd();
  }

  #fail(kind: UpstreamFault['kind'], cause?: unknown): void {
    if (this.isOver) return;
    this.isOver = true;
    const connection = this.#connection;
    this.#stopBody?.();
    connection?.leave();
    connection?.socket.destroy();
    this.#handler.onFault({
      kind,
      sent: this.#sent,
      reusedConnection: connection !== undefined && connection.exchanges > 1,
      answerBegun: this.#answerBegun,
      cause,
    });
  }

  /** The client's stream is read once there is a connection, and what is not read waits in it; it is not ours to destroy. */
  #watchBody(): void {
    const { body } = this.#request;
    if (body === null || Buffer.isBuffer(body)) return;
    const { stream } = body;
    if (stream.destroyed && !stream.readableEnded) {
      this.#fail('request-body');
      return;
    }
    stream.once('error', (cause) => this.#fail('request-body', cause));
    stream.once('close', () => {
      if (!stream.readableEnded) this.#fail('request-body');
    });
  }
}

/** Octets as they are, behind a head that said how many. */
function plainSink(socket: Socket): BodySink {
  return {
    write(octets, taken) {
      socket.write(octets, taken);
      return socket.writableLength === 0;
    },
    end() {},
  };
}

/** RFC 9112 section 7.1. */
function chunkedSink(socket: Socket): BodySink {
  return {
    write(octets, taken) {
      socket.cork();
      socket.write(`${octets.length.toString(16)}\r\n`, 'latin1');
      socket.write(octets);
      socket.write('\r\n', 'latin1', taken);
      socket.uncork();
      return socket.writableLength === 0;
    },
    end: () => void socket.write('0\r\n\r\n', 'latin1'),
  };
}
