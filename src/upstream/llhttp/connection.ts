import type { Socket } from 'node:net';
import { EndOfTurn } from '../../lib/end-of-turn.ts';
import { isolated } from '../../lib/faults.ts';
import { PooledConnection } from '../connection.ts';
import { responseHeadBytes } from '../engine.ts';
import { longestPiece } from './llhttp.ts';
import { ResponseParser } from './response-parser.ts';

/** The reader of the response that a connection carries. */
export interface ResponseReader {
  /**
   * With `release` the piece belongs to the reader until it calls that, for ever if it does not. Without it the next octets
   * overwrite the piece.
   */
  onPiece(response: ResponseParser, piece: Buffer, release: (() => void) | undefined): void;
  /** The upstream has closed the connection, or it broke. */
  onClosed(response: ResponseParser | undefined, cause?: unknown): void;
  /** An exception while reading: it must end only this exchange. */
  onThrown(cause: unknown): void;
}

/** A piece with more body than this is given to the reader instead of copied; the next octets are read into another one. */
const copiedBytes = longestPiece / 2;

/** Chunks of a body in one turn of the event loop; the rest waits for the next turn. */
const chunksPerTurn = 1_024;

const heldUp = new EndOfTurn<LlhttpConnection>(
  (connection) => connection.goOn(),
  ({ socket }) => socket.destroy(),
);

/** A connection whose bytes go straight to the parser, without a stream or a queue of chunks. */
export class LlhttpConnection extends PooledConnection {
  readonly #response: ResponseParser;
  #reader: ResponseReader | undefined;
  #broken: unknown;

  constructor(socket: Socket, piece: Buffer) {
    super(socket, piece);
    this.#response = new ResponseParser(responseHeadBytes);
    socket.on('error', (cause) => {
      this.#broken = cause;
    });
    const ended = isolated(() => this.#tellClosed(this.#response));
    const closed = isolated(() => {
      this.#tellClosed(undefined);
      this.#response.free();
      giveBackPiece(this.piece);
    });
    socket.on('end', ended).on('close', closed);
  }

  /** Begins a response, for `reader`. */
  begin(reader: ResponseReader, isHeadRequest: boolean): void {
    this.#reader = reader;
    this.#response.begin(isHeadRequest);
  }

  /** The exchange has ended: what arrives now belongs to nobody. */
  leave(): void {
    this.#reader = undefined;
    // Node's TLS also delivers what it has decrypted while paused, so that the response may end while the socket is paused.
    if (this.socket.isPaused()) this.socket.resume();
  }

  read(length: number): boolean {
    const reader = this.#reader;
    if (reader === undefined) {
      this.socket.destroy();
      return true;
    }
    try {
      const { piece } = this;
      const response = this.#response;
      response.read(piece, length);
      const isGiven = response.bodyEnd - response.bodyStart > copiedBytes;
      if (isGiven) this.piece = newPiece();
      reader.onPiece(response, piece, isGiven ? releaseOf(piece) : undefined);
    } catch (cause) {
      this.#throwTo(reader, cause);
    }
    if (this.#response.bodyParts <= chunksPerTurn) return true;
    heldUp.add(this);
    return false;
  }

  /** Continues reading in the next turn, unless the reader itself has paused. */
  goOn(): void {
    if (!this.socket.isPaused()) this.socket.resume();
  }

  #tellClosed(response: ResponseParser | undefined): void {
    const reader = this.#reader;
    this.#reader = undefined;
    try {
      reader?.onClosed(response, this.#broken);
    } catch (cause) {
      this.#throwTo(reader, cause);
    }
  }

  #throwTo(reader: ResponseReader | undefined, cause: unknown): void {
    this.socket.destroy();
    reader?.onThrown(cause);
  }
}

/**
 * Pieces for reuse. Each has 64 KiB outside the heap, which the garbage collector counts: with a new one for each read it did a
 * full collection after every two hundred bodies of 100 KB; with an upstream that keeps no connections, 60 MiB piled up first.
 */
const sparePieces: Buffer[] = [];
const sparePiecesAtMost = 64;

export function newPiece(): Buffer {
  return sparePieces.pop() ?? Buffer.allocUnsafeSlow(longestPiece);
}

/** Only for a piece that nobody else holds: another client's response may be read into it next. */
export function giveBackPiece(piece: Buffer): void {
  if (sparePieces.length < sparePiecesAtMost) sparePieces.push(piece);
}

/** Gives a piece back once, however often it is called: given back twice, it would be used for two clients at a time. */
function releaseOf(piece: Buffer): () => void {
  let given: Buffer | undefined = piece;
  return () => {
    if (given !== undefined) giveBackPiece(given);
    given = undefined;
  };
}
