import type { Socket } from 'node:net';
import { isolated } from '../../lib/faults.ts';
import { PooledConnection } from '../connection.ts';
import { responseHeadBytes } from '../engine.ts';
import { ResponseHeadCheck } from '../response-framing.ts';

/** The exchange that a connection carries. */
export interface ConnectionUser {
  /** The bytes are not a response. Called before Node's parser sees them. */
  onMalformed(why: string): void;
  /** An exception while reading: it must end only this exchange. */
  onThrown(cause: unknown): void;
  /** The response was read to its end. */
  readonly isAnswered: boolean;
}

/**
 * Octets that Node's parser gets at a time. It calls back for each chunk of a body: 64 KiB may have ten thousand of them, which
 * would block all other requests. After a piece with many chunks nothing is read until the next turn (see `GatheredPieces`).
 */
export const pieceBytes = 8_192;

/** A connection that Node's own client writes to and reads from. */
export class HttpProxy3Connection extends PooledConnection {
  readonly #heads: ResponseHeadCheck;
  #user: ConnectionUser | undefined;

  constructor(socket: Socket, piece: Buffer) {
    super(socket, piece);
    this.#heads = new ResponseHeadCheck(responseHeadBytes);
    // Before Node's client listens: heads that its parser would accept leniently are checked here first.
    socket.on(
      'data',
      isolated(
        (piece: Buffer) => this.#check(piece),
        () => socket.destroy(),
      ),
    );
  }

  begin(user: ConnectionUser): void {
    this.#user = user;
    this.#heads.begin();
  }

  /** The exchange has ended: what arrives now belongs to nobody. */
  leave(): void {
    this.#user = undefined;
  }

  read(length: number): boolean {
    // Not from Buffer's shared pool: a piece that waits would keep its 64 KiB alive.
    const octets = Buffer.allocUnsafeSlow(length);
    this.piece.copy(octets, 0, 0, length);
    return this.socket.push(octets);
  }

  #check(piece: Buffer): void {
    const user = this.#user;
    if (user === undefined || user.isAnswered) {
      this.socket.destroy();
      return;
    }
    if (this.#heads.isDone) return;
    try {
      const why = this.#heads.read(piece, piece.length);
      if (why !== undefined) user.onMalformed(why);
    } catch (cause) {
      user.onThrown(cause);
    }
  }
}
