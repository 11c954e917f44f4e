import type { Socket } from 'node:net';
import { EndOfTurn } from '../../lib/end-of-turn.ts';
import { isolated } from '../../lib/faults.ts';
import { PooledConnection } from '../connection.ts';
import { responseHeadBytes } from '../engine.ts';
import { longestPiece } from './llhttp.ts';
import { ResponseParser } from './response-parser.ts';

/** Who reads the response that a connection is carrying. */
export interface ResponseReader {
  /**
   * `release`: the piece is the reader's until it calls this, and for good if it never does; without it the next
   * octets will overwrite the piece.
   */
  onPiece(response: ResponseParser, piece: Buffer, release: (() => void) | undefined): void;
  /** The upstream ended the connection, or it broke. */
  onClosed(response: ResponseParser | undefined, cause?: unknown): void;
  /** Reading threw: only this exchange ends. */
  onThrown(cause: unknown): void;
}

/** A piece with more body than this is given away, not copied: the next octets are read into another one. */
const copiedBytes = longestPiece / 2;

/** Chunks in one turn of the event loop after which the rest of a body has to wait for the next one. */
const chunksPerTurn = 1_024;

const heldUp = new EndOfTurn<LlhttpConnection>(
  (connection) => connection.goOn(),
  ({ socket }) => socket.destroy(),
);

/** A connection whose bytes go straight to the parser: no stream, no queue of chunks. */
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

  /** The turn is over; whoever has the connection may be holding it up by itself. */
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
 * Pieces that nobody reads or writes any more, for whoever needs one next. Each is 64 KiB outside of the heap, and the collector
 * counts those: with a new one for each read, it went through the whole heap after every two hundred bodies of 100 KB; and
 * while an upstream keeps no connections, 60 MiB gathered before it did.
 */
const sparePieces: Buffer[] = [];
const sparePiecesAtMost = 64;

export function newPiece(): Buffer {
  return sparePieces.pop() ?? Buffer.allocUnsafeSlow(longestPiece);
}

/** Only of a piece that nobody else has: what is read into it next may be for another client. */
export function giveBackPiece(piece: Buffer): void {
  if (sparePieces.length < sparePiecesAtMost) sparePieces.push(piece);
}

/** Gives a piece back once, however often it is called: given back twice, it would be read into for two clients. */
function releaseOf(piece: Buffer): () => void {
  let given: Buffer | undefined = piece;
  return () => {
    if (given !== undefined) giveBackPiece(given);
    given = undefined;
  };
}
