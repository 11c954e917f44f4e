import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { type Connection, defaultIdleTimeoutMs } from '../connection-pool.ts';
import type { HttpProxy3Pool } from './exchange.ts';

/** A connection that node's own client writes to and reads from. */
export class HttpProxy3Connection implements Connection {
  readonly socket: Socket;
  exchanges = 0;
  idleTimeoutMs: number;
  idleUntilMs = 0;
  /** The response that is being read; bytes behind its end are nobody's, and end the connection. */
  response: IncomingMessage | undefined;

  constructor(socket: Socket, pool: HttpProxy3Pool, idleTimeoutMs = defaultIdleTimeoutMs) {
    this.socket = socket;
    this.idleTimeoutMs = idleTimeoutMs;
    socket.on('data', () => {
      if (this.idleUntilMs !== 0 || this.response?.complete === true) socket.destroy();
    });
    socket.on('end', () => {
      if (this.idleUntilMs !== 0) socket.destroy();
    });
    // Node's word for a socket whose exchange left it whole.
    socket.on('free', () => {
      this.response = undefined;
      pool.release(this);
    });
  }
}
