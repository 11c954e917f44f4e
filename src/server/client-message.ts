import { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { EndOfTurn } from '../event-loop/end-of-turn.ts';

/** Octets of a piece that is worth handing on by itself; smaller ones are put together first. */
const wholeBytes = 4_096;
/** Octets that small pieces are put together to. */
const gatheredBytes = 16_384;
/** Octets that wait for a reader before no more is read of the socket; one read of node's (64 KiB) may come on top. */
const waitingBytes = 32_768;
/** Small pieces in one turn of the event loop after which the rest of the body has to wait for the next one. */
const piecesPerTurn = 1_024;

const gathered = new EndOfTurn<ClientMessage>(
  (message) => message.handOn(),
  (message) => message.destroy(),
);

/**
 * A request whose body costs by its octets, however its client cuts it. Node makes a Buffer, an event and an entry in
 * the stream's queue of each chunk: octets in chunks of their own would take three hundred times their size while they
 * wait, and each a write of its own when they go on. Here small pieces are copied together until the end of the turn,
 * or until somebody reads them, and a turn takes a bounded number of them from one connection.
 */
export class ClientMessage extends IncomingMessage {
  #held: Buffer | undefined;
  #length = 0;
  #pieces = 0;

  constructor(socket: Socket) {
    super(socket);
    // Node has no option for this that would leave the socket and the response alone.
    const { _readableState } = this as unknown as { _readableState: { highWaterMark: number } };
    _readableState.highWaterMark = waitingBytes;
  }

  /** What node's parser calls with each chunk, and with null at the end; `false` stops the reading of the socket. */
  override push(piece: Buffer | null): boolean {
    if (piece === null) {
      this.#release();
      return super.push(null);
    }
    if (piece.length >= wholeBytes) {
      this.#release();
      return super.push(piece);
    }
    if (this.#pieces === 0) gathered.add(this);
    this.#pieces += 1;
    this.#gather(piece);
    if (this.#length >= gatheredBytes) this.#release();
    return this.#pieces < piecesPerTurn && this.#length + this.readableLength < waitingBytes;
  }

  /** Every way of reading a stream comes through here, or waits for the end of the turn. */
  override read(size?: number): unknown {
    if (this.#length > 0 && this.readableLength === 0) this.#release();
    return super.read(size);
  }

  /** The turn is over. What nobody reads yet stays in one Buffer, and does not become an entry of the queue. */
  handOn(): void {
    this.#pieces = 0;
    if (this.#length === 0 || this.destroyed) return;
    if (this.readableFlowing === true || this.readableLength === 0) this.#release();
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
    const grown = Buffer.allocUnsafeSlow(Math.max(2 * length, 1_024));
    held.copy(grown, 0, 0, this.#length);
    this.#held = grown;
  }

  #release(): void {
    const held = this.#held;
    if (held === undefined) return;
    const octets = held.subarray(0, this.#length);
    this.#held = undefined;
    this.#length = 0;
    super.push(octets);
  }
}
