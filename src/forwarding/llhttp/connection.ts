import type { Socket } from 'node:net';
import { type ConnectionFault, openConnection } from '../connection.ts';
import { type Connection, defaultIdleTimeoutMs } from '../connection-pool.ts';
import type { EngineOptions } from '../engine.ts';
import { longestPiece } from './llhttp.ts';
import { ResponseParser } from './response-parser.ts';

/** Who reads the response that a connection is carrying. */
export interface ResponseReader {
  /** `isKept`: the piece is the reader's from now on; otherwise the next bytes will overwrite it. */
  onPiece(response: ResponseParser, piece: Buffer, isKept: boolean): void;
  /** The upstream ended the connection, or it broke. */
  onClosed(response: ResponseParser | undefined, cause?: unknown): void;
}

/** A piece with more body than this is given away: what is new memory for the next one costs less than copying. */
const copiedBytes = longestPiece / 2;

/** A connection whose bytes go straight to the parser: no stream, no queue of chunks. */
export class LlhttpConnection implements Connection {
  readonly socket: Socket;
  exchanges = 0;
  idleTimeoutMs: number;
  idleUntilMs = 0;
  /** Where the next bytes are put. */
  piece: Buffer;
  readonly #response: ResponseParser;
  #reader: ResponseReader | undefined;
  #broken: unknown;

  constructor(socket: Socket, piece: Buffer, { idleTimeoutMs, responseHeadBytes }: EngineOptions) {
    this.socket = socket;
    this.piece = piece;
    this.idleTimeoutMs = idleTimeoutMs ?? defaultIdleTimeoutMs;
    this.#response = new ResponseParser(responseHeadBytes ?? 65_536);
    socket.on('error', (cause) => {
      this.#broken = cause;
    });
    socket.on('end', () => this.#leave()?.onClosed(this.#response));
    socket.on('close', () => {
      this.#leave()?.onClosed(undefined, this.#broken);
      this.#response.free();
    });
  }

  /** The next response is for `reader`. */
  begin(reader: ResponseReader, isHeadRequest: boolean): void {
    this.#reader = reader;
    this.#response.begin(isHeadRequest);
  }

  /** Its exchange is over: whatever comes now is nobody's. */
  leave(): void {
    this.#reader = undefined;
    // TLS gives what it has deciphered also while it is held up, and so may have given the end.
    if (this.socket.isPaused()) this.socket.resume();
  }

  read(length: number): void {
    const reader = this.#reader;
    if (reader === undefined) {
      this.socket.destroy();
      return;
    }
    const { piece } = this;
    const response = this.#response;
    response.read(piece, length);
    const isKept = response.bodyEnd - response.bodyStart > copiedBytes;
    if (isKept) this.piece = newPiece();
    reader.onPiece(response, piece, isKept);
  }

  #leave(): ResponseReader | undefined {
    const reader = this.#reader;
    this.#reader = undefined;
    return reader;
  }
}

/** See `openConnection`. */
export function openLlhttpConnection(
  options: EngineOptions,
  opened: (connection: LlhttpConnection) => void,
  failed: (fault: ConnectionFault) => void,
): () => void {
  const first = newPiece();
  let connection: LlhttpConnection | undefined;
  let spokeFirst = false;
  return openConnection(
    options,
    (socket) => {
      connection = new LlhttpConnection(socket, first, options);
      // What an upstream says before it was asked would be somebody's answer.
      if (spokeFirst) socket.destroy();
      opened(connection);
    },
    failed,
    {
      buffer: () => connection?.piece ?? first,
      callback(length) {
        if (connection === undefined) spokeFirst = true;
        else connection.read(length);
        return true;
      },
    },
  );
}

function newPiece(): Buffer {
  return Buffer.allocUnsafeSlow(longestPiece);
}
