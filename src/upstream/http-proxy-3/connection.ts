import type { Socket } from 'node:net';
import { PooledConnection } from '../connection.ts';
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

/** A connection that node's own client writes to and reads from. */
export class HttpProxy3Connection extends PooledConnection {
  readonly #heads: ResponseHeadCheck;
  #user: ConnectionUser | undefined;

  constructor(socket: Socket, responseHeadBytes: number) {
    super(socket);
    this.#heads = new ResponseHeadCheck(responseHeadBytes);
    // Before node's client listens: what it would forgive is seen here first.
    socket.on('data', (piece: Buffer) => this.#read(piece));
  }

  begin(user: ConnectionUser): void {
    this.#user = user;
    this.#heads.begin();
  }

  /** Its exchange is over: whatever comes now is nobody's. */
  leave(): void {
    this.#user = undefined;
  }

  #read(piece: Buffer): void {
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
