import type { Socket } from 'node:net';
import { type EarlyBody, IncomingMessage as NodeMessage } from '../http/node-http.ts';
import { EndOfTurn } from '../lib/end-of-turn.ts';
import { boundWaiting, GatheredPieces, wholeBytes } from '../lib/gathered-pieces.ts';

const noOctets: Buffer = Buffer.alloc(0);

const incomplete = new EndOfTurn<ClientMessage>(
  (message) => message.readLate(),
  (message) => message.destroy(),
);

/**
 * A request whose body costs by its octets, however small the pieces in which its client sends it: see
 * `GatheredPieces`. A body that comes with its head, as most do, does without a stream.
 */
export class ClientMessage extends NodeMessage implements EarlyBody {
  /** Most requests have no body. */
  #pieces: GatheredPieces | undefined;
  /** Something of the body, or its end, went to the stream. */
  #isStreamed = false;
  /** Who waits for the end of the body in this turn, and the one piece that it may have. */
  #take: ((whole: Buffer | undefined) => void) | undefined;
  #onlyPiece = noOctets;

  constructor(socket: Socket) {
    super(socket);
    // Node has no option for this bound that leaves the socket and the response alone.
    boundWaiting(this);
  }

  readEarly(take: (whole: Buffer | undefined) => void): void {
    // The second of two readers finds the stream without what the first one took, which is for it to notice.
    if (this.#isStreamed || this.#take !== undefined) {
      take(undefined);
      return;
    }
    this.#take = take;
    incomplete.add(this);
  }

  /** There is more of the body than one piece of this turn: all of it goes the usual way. */
  readLate(): void {
    const take = this.#take;
    if (take === undefined) return;
    this.#take = undefined;
    if (this.#onlyPiece !== noOctets) this.push(this.#onlyPiece);
    this.#onlyPiece = noOctets;
    take(undefined);
  }

  /** What node's parser calls with each chunk, and with null at the end; `false` stops the reading of the socket. */
  override push(piece: Buffer | null): boolean {
    if (this.#take !== undefined) {
      if (piece === null) this.#giveWhole(this.#take);
      else if (this.#onlyPiece === noOctets) {
        this.#onlyPiece = piece;
        return true;
      } else this.readLate();
    }
    this.#isStreamed = true;
    if (piece !== null && piece.length < wholeBytes) {
      this.#pieces ??= new GatheredPieces(this, (octets) => super.push(octets));
      return this.#pieces.add(piece);
    }
    this.#pieces?.release();
    return super.push(piece);
  }

  /** Every way to read a stream calls this, or waits for the end of the turn. */
  override read(size?: number): unknown {
    this.#pieces?.beforeRead();
    return super.read(size);
  }

  /** The caller ends the stream, which then has no octet and no reader. */
  #giveWhole(take: (whole: Buffer) => void): void {
    this.#take = undefined;
    take(this.#onlyPiece);
    this.#onlyPiece = noOctets;
  }
}
