import type { Socket } from 'node:net';
import { openConnection } from '../connection.ts';
import { ConnectionPool } from '../connection-pool.ts';
import type { EngineOptions, ResponseHead, UpstreamEngine } from '../engine.ts';
import { idleTimeoutSaid } from '../idle-timeout.ts';
import { createPooledEngine, PooledExchange } from '../pooled-exchange.ts';
import { type BodySink, pumpBody } from '../request-body-pump.ts';
import { requestHead } from '../request-framing.ts';
import { giveBackPiece, LlhttpConnection, newPiece, type ResponseReader } from './connection.ts';
import type { ResponseParser } from './response-parser.ts';

type LlhttpPool = ConnectionPool<LlhttpConnection>;

/** Octets of a body that is copied after its head, so that both leave in one write. */
const copiedBytes = 4096;

/** Sends upstream requests over shopward's own connections, and parses responses with llhttp: the cheapest engine. */
export function createLlhttpEngine(options: EngineOptions): UpstreamEngine {
  const pool: LlhttpPool = new ConnectionPool(options, (opened, failed) => {
    const piece = newPiece();
    const adopt = (socket: Socket) => new LlhttpConnection(socket, piece);
    return openConnection(options, piece, adopt, opened, (fault) => {
      giveBackPiece(piece);
      failed(fault);
    });
  });
  return createPooledEngine(pool, (request, handler) => new LlhttpExchange(request, handler, pool));
}

/** One request and its response on one connection. */
class LlhttpExchange extends PooledExchange<LlhttpConnection> implements ResponseReader {
  #stopBody: (() => void) | undefined;
  #isWritten = false;
  #answerBegun = false;

  resume(): void {
    if (!this.isOver) this.connection?.socket.resume();
  }

  onPiece(response: ResponseParser, piece: Buffer, release: (() => void) | undefined): void {
    this.#answerBegun = true;
    try {
      this.#take(response, piece, release);
    } catch (cause) {
      this.fail('internal', cause);
    }
  }

  onClosed(response: ResponseParser | undefined, cause?: unknown): void {
    response?.finish();
    if (response?.isComplete === true) this.#complete(response);
    else this.fail('reset', cause ?? response?.fault);
  }

  /** An exception while reading. */
  onThrown(cause: unknown): void {
    this.fail('internal', cause);
  }

  protected get answerBegun(): boolean {
    return this.#answerBegun;
  }

  protected transmit(connection: LlhttpConnection): void {
    const head = requestHead(this.request);
    if (!this.mayLeave()) return;
    connection.begin(this, this.request.method === 'HEAD');
    const { socket } = connection;
    const { body } = this.request;
    if (body === null) socket.write(head, 'latin1');
    else if (!Buffer.isBuffer(body)) {
      socket.write(head, 'latin1');
      const sink = body.length === undefined ? chunkedSink(socket) : plainSink(socket);
      this.#stopBody = pumpBody(body.stream, body.length, sink, {
        onWritten: () => this.#written(),
        onBroken: (cause) => this.fail('request-body', cause),
      });
      return;
    } else if (body.length <= copiedBytes) socket.write(head + body.toString('latin1'), 'latin1');
    else {
      socket.cork();
      socket.write(head, 'latin1');
      socket.write(body);
      socket.uncork();
    }
    this.#written();
  }

  protected detach(): void {
    if (!this.#isWritten) this.#stopBody?.();
    this.connection?.leave();
  }

  #written(): void {
    this.#isWritten = true;
    const socket = this.connection?.socket;
    if (this.handler.onSent === undefined || socket === undefined) return;
    // The kernel may not have taken all of it yet.
    if (socket.writableLength === 0) this.#tellSent();
    else
      socket.write('', (broken) => {
        if (!broken) this.#tellSent();
      });
  }

  #tellSent(): void {
    if (this.isOver) return;
    try {
      this.handler.onSent?.();
    } catch (cause) {
      this.fail('internal', cause);
    }
  }

  /** Passes on what the piece had, in its order. The handler may end the exchange at any step. */
  #take(response: ResponseParser, piece: Buffer, release: (() => void) | undefined): void {
    const { handler } = this;
    for (const { status, fields } of response.informational) {
      if (!this.isOver) handler.onInformational?.(status, fields);
    }
    const { head, bodyStart, bodyEnd } = response;
    if (head !== undefined && !this.isOver) this.#takeHead(head);
    let mayGoOn = true;
    if (bodyEnd > bodyStart && !this.isOver) {
      const body = piece.subarray(bodyStart, bodyEnd);
      mayGoOn = release === undefined ? handler.onData(Buffer.from(body)) : handler.onData(body, release);
    }
    if (this.isOver) return;
    if (response.fault !== undefined) this.fail('malformed', response.fault);
    else if (response.isComplete) this.#complete(response);
    else if (!mayGoOn) this.connection?.socket.pause();
  }

  #takeHead({ status, reason, fields }: ResponseHead): void {
    const { connection } = this;
    if (connection !== undefined) {
      connection.saidIdleTimeoutMs = idleTimeoutSaid(fields) ?? connection.saidIdleTimeoutMs;
    }
    this.handler.onHead(status, reason, fields);
  }

  /** A response that comes before the whole request was sent ends the connection: the rest will never be sent. */
  #complete(response: ResponseParser): void {
    const isSent = this.#isWritten && this.connection?.socket.writableLength === 0;
    this.succeed(isSent && response.isReusable);
  }
}

/** Writes a body of known length. */
function plainSink(socket: Socket): BodySink {
  return {
    write(octets, taken) {
      socket.write(octets, taken);
      return socket.writableLength === 0;
    },
    end() {},
  };
}

/** Writes a chunked body (RFC 9112 section 7.1). */
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
