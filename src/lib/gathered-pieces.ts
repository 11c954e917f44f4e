import type { Readable } from 'node:stream';
import { EndOfTurn } from './end-of-turn.ts';

/** Chunks of at least this many octets are passed on directly; smaller ones are gathered. */
export const wholeBytes = 4_096;
/** Gathered octets that are passed on without waiting for the end of the tick. */
const gatheredBytes = 16_384;
/** Size of the largest buffer: the last chunk may exceed `gatheredBytes` by its own length. */
const maxGathered = gatheredBytes + wholeBytes;
/** Octets that wait for the reader when the socket is paused; one read of Node's (64 KiB) may come on top. */
const waitingBytes = 32_768;
/** Small chunks that one connection may deliver in one tick of the event loop; the rest waits for the next one. */
const piecesPerTurn = 1_024;

const gathered = new EndOfTurn<GatheredPieces>(
  (pieces) => pieces.handOn(),
  (pieces) => pieces.stream.destroy(),
);

/**
 * Gathers the small chunks of a body, so that its cost depends on its length, not on its chunks. Node makes a Buffer, an event
 * and a queue entry of each chunk: chunks of one octet take three hundred times their size, and a write each. Here small chunks
 * are copied together until the end of the tick or until the stream is read; one connection may deliver a bounded number.
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

  /** Takes a chunk of less than `wholeBytes`. `false`: the socket is to be paused. */
  add(piece: Buffer): boolean {
    if (this.#pieces === 0) gathered.add(this);
    this.#pieces += 1;
    this.#gather(piece);
    if (this.#length >= gatheredBytes) this.release();
    return this.#pieces < piecesPerTurn && this.#length + this.stream.readableLength < waitingBytes;
  }

  /** To be called before the stream is read. */
  beforeRead(): void {
    if (this.#length > 0 && this.stream.readableLength === 0) this.release();
  }

  /** Called at the end of the tick. Without a reader the octets stay in one Buffer, so that the queue does not grow. */
  handOn(): void {
    const { stream } = this;
    this.#pieces = 0;
    if (stream.destroyed) return;
    if (stream.readableFlowing === true || stream.readableLength === 0) this.release();
  }

  /** Passes on what is gathered; to be called before anything that follows it. */
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
    const grown = Buffer.allocUnsafeSlow(Math.min(Math.max(2 * length, 1_024), maxGathered));
    held.copy(grown, 0, 0, this.#length);
    this.#held = grown;
  }
}

/** Sets how much of a message Node buffers before it pauses the socket; there is no option for it. */
export function boundWaiting(message: Readable): void {
  const { _readableState } = message as unknown as { _readableState: { highWaterMark: number } };
  _readableState.highWaterMark = waitingBytes;
}
