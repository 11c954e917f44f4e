import type { Readable } from 'node:stream';
import { EndOfTurn } from './end-of-turn.ts';

/** Octets of a piece that is worth handing on by itself; smaller ones are put together first. */
export const wholeBytes = 4_096;
/** Octets that small pieces are put together to. */
const gatheredBytes = 16_384;
/** What may be gathered at most: a piece more than that. Room beyond it would wait for the reader as well. */
const mostGathered = gatheredBytes + wholeBytes;
/**
 * Octets that wait for a reader before no more is read of the socket; one read of node's (64 KiB) may come on top.
 * Exported for its tests.
 */
export const waitingBytes = 32_768;
/** Small pieces in one turn of the event loop after which the rest of the body has to wait for the next one. */
const piecesPerTurn = 1_024;

const gathered = new EndOfTurn<GatheredPieces>(
  (pieces) => pieces.handOn(),
  (pieces) => pieces.stream.destroy(),
);

/**
 * The small pieces of a message that node's parser makes a stream of, so that its body costs by its octets, however its
 * sender cuts it. Node makes a Buffer, an event and an entry in the stream's queue of each chunk: octets in chunks of
 * their own would take three hundred times their size while they wait, and each a write of its own when they go on. Here
 * small pieces are copied together until the end of the turn, or until somebody reads them, and a turn takes a bounded
 * number of them from one connection.
 */
export class GatheredPieces {
  readonly stream: Readable;
  readonly #pushOn: (octets: Buffer) => boolean;
  #held: Buffer | undefined;
  #length = 0;
  #pieces = 0;

  /** `pushOn`: the stream's own `push`. */
  constructor(stream: Readable, pushOn: (octets: Buffer) => boolean) {
    this.stream = stream;
    this.#pushOn = pushOn;
  }

  /** A piece of less than `wholeBytes`; `false` stops the reading of the socket. */
  add(piece: Buffer): boolean {
    if (this.#pieces === 0) gathered.add(this);
    this.#pieces += 1;
    this.#gather(piece);
    if (this.#length >= gatheredBytes) this.release();
    return this.#pieces < piecesPerTurn && this.#length + this.stream.readableLength < waitingBytes;
  }

  /** Somebody is about to read the stream. */
  beforeRead(): void {
    if (this.#length > 0 && this.stream.readableLength === 0) this.release();
  }

  /** The turn is over. What nobody reads yet stays in one Buffer, and does not become an entry of the queue. */
  handOn(): void {
    const { stream } = this;
    this.#pieces = 0;
    if (this.#length === 0 || stream.destroyed) return;
    if (stream.readableFlowing === true || stream.readableLength === 0) this.release();
  }

  /** Hands on what is held, before what follows it. */
  release(): void {
    const held = this.#held;
    if (held === undefined) return;
    const octets = held.subarray(0, this.#length);
    this.#held = undefined;
    this.#length = 0;
    this.#pushOn(octets);
  }

  #gather(piece: Buffer): void {
    const length = this.#length + piece.length;
    if (this.#held === undefined) this.#held = piece;
    else {
      if (length > this.#held.length) this.#grow(length);
      piece.copy(this.#held, this.#length);
    }
    this.#length = length;
  }

  #grow(length: number): void {
    const held = this.#held as Buffer;
    const grown = Buffer.allocUnsafeSlow(Math.min(Math.max(2 * length, 1_024), mostGathered));
    held.copy(grown, 0, 0, this.#length);
    this.#held = grown;
  }
}

/** How much of a message node keeps for its reader before it reads no more of the socket; node has no option for it. */
export function boundWaiting(message: Readable): void {
  const { _readableState } = message as unknown as { _readableState: { highWaterMark: number } };
  _readableState.highWaterMark = waitingBytes;
}

/**
 * The same for a message of a class of node's own, such as a response that was just received: nothing of its body may
 * have been read. Node makes what its client receives itself, so the two methods are replaced on this one object.
 */
export function gatherPiecesOf(message: Readable): void {
  boundWaiting(message);
  const { push, read } = message;
  const pieces = new GatheredPieces(message, (octets) => push.call(message, octets));
  message.push = (piece: Buffer | null) => {
    if (piece !== null && piece.length < wholeBytes) return pieces.add(piece);
    pieces.release();
    return push.call(message, piece);
  };
  message.read = (size?: number) => {
    pieces.beforeRead();
    return read.call(message, size);
  };
}
