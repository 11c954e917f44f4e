import type { Socket } from 'node:net';
import { IncomingMessage } from '../http/node-http.ts';
import { boundWaiting, GatheredPieces, wholeBytes } from '../lib/gathered-pieces.ts';

/** A request whose body costs by its octets, however its client cuts it: see `GatheredPieces`. */
export class ClientMessage extends IncomingMessage {
  /** Most requests have no body. */
  #pieces: GatheredPieces | undefined;

  constructor(socket: Socket) {
    super(socket);
    // Node has no option for this that would leave the socket and the response alone.
    boundWaiting(this);
  }

  /** What node's parser calls with each chunk, and with null at the end; `false` stops the reading of the socket. */
  override push(piece: Buffer | null): boolean {
    if (piece !== null && piece.length < wholeBytes) {
      this.#pieces ??= new GatheredPieces(this, (octets) => super.push(octets));
      return this.#pieces.add(piece);
    }
    this.#pieces?.release();
    return super.push(piece);
  }

  /** Every way of reading a stream comes through here, or waits for the end of the turn. */
  override read(size?: number): unknown {
    this.#pieces?.beforeRead();
    return super.read(size);
  }
}
