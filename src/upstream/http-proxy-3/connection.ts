import type { Socket } from 'node:net';
import { isolated } from '../../lib/faults.ts';
import { PooledConnection } from '../connection.ts';
import { responseHeadBytes } from '../engine.ts';
import { ResponseHeadCheck } from '../response-framing.ts';

/** Who has the exchange that a connection carries. */
export interface ConnectionUser {
  /** Bytes that are no response; node's parser has not seen them yet. */
  onMalformed(why: string): void;
  /** Reading threw: only this exchange ends. */
  onThrown(cause: unknown): void;
  /** The response was read to its end. */
  readonly isAnswered: boolean;
}

/**
 * Octets that node's parser is given at a time. It calls back for each chunk of a body, however small: the ten thousand
 * of 64 KiB would hold up everybody else for as long. After the first piece of such a body nothing is read until the
 * next turn (see `GatheredPieces`).
 */
export const pieceBytes = 8_192;

/** A connection that node's own client writes to and reads from. */
export class HttpProxy3Connection extends PooledConnection {
  readonly #heads: ResponseHeadCheck;
  #user: ConnectionUser | undefined;

  constructor(socket: Socket, piece: Buffer) {
    super(socket, piece);
    this.#heads = new ResponseHeadCheck(responseHeadBytes);
    // Before node's client listens: what it would forgive is seen here first.
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

  /** Its exchange is over: whatever comes now is nobody's. */
  leave(): void {
    this.#user = undefined;
  }

  read(length: number): boolean {
    // Not of the pool that all share: while a piece waits, its pool of 64 KiB would wait with it.
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
