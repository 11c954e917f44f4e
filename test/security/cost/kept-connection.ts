import net from 'node:net';
import { parseResponse } from '../../harness/raw-response.ts';

/** The longest wait for an answer; only a hang takes as long. */
const patienceMs = 20_000;

/**
 * Sends requests one after another on one connection while both sides keep it open: opening one costs several times as
 * much as most exchanges.
 */
export class KeptConnection {
  readonly #port: number;
  #socket: net.Socket | undefined;

  constructor(port: number) {
    this.#port = port;
  }

  /** Resolves to the first 200 octets of the answer once it is complete; empty: no answer. */
  async send(octets: string | Buffer): Promise<string> {
    // A connection that was closed while idle is not used again.
    const kept = this.#socket?.destroyed === false ? this.#socket : undefined;
    // Without an answer, the connection was closed before this request, which is sent again.
    const answer = kept === undefined ? undefined : await this.#exchange(kept, octets);
    return answer ?? (await this.#exchange(this.#open(), octets)) ?? '';
  }

  #open(): net.Socket {
    // `close` follows an error, and is enough.
    return net
      .connect(this.#port, '127.0.0.1')
      .setNoDelay(true)
      .on('error', () => {});
  }

  close(): void {
    this.#socket?.destroy();
  }

  /** Undefined: the connection ended without an answer. */
  async #exchange(socket: net.Socket, octets: string | Buffer): Promise<string | undefined> {
    const { received, isOver } = await exchangeOn(socket, octets);
    this.#socket = isOver ? undefined : socket;
    if (isOver) socket.destroy();
    return received.length === 0 ? undefined : received.toString('latin1', 0, 200);
  }
}

/** `isOver`: the connection is not used again. */
interface Exchanged {
  readonly received: Buffer;
  readonly isOver: boolean;
}

function exchangeOn(socket: net.Socket, octets: string | Buffer): Promise<Exchanged> {
  const method = octets.slice(0, 8).toString().split(' ')[0] ?? '';
  let received: Buffer = Buffer.alloc(0);
  const { promise, resolve, reject } = Promise.withResolvers<Exchanged>();
  const end = () => resolve({ received, isOver: true });
  const late = setTimeout(() => reject(new Error('no answer')), patienceMs);
  const onData = (chunk: Buffer) => {
    received = received.length === 0 ? chunk : Buffer.concat([received, chunk]);
    const isOver = isLast(received, method);
    if (isOver !== undefined) resolve({ received, isOver });
  };
  socket.on('data', onData).on('end', end).on('close', end);
  socket.write(octets);
  return promise.finally(() => {
    clearTimeout(late);
    socket.off('data', onData).off('end', end).off('close', end);
  });
}

/** Whether the complete answer ends its connection; undefined: the answer is incomplete. */
function isLast(received: Buffer, method: string): boolean | undefined {
  try {
    const parsed = parseResponse(received, method, undefined);
    if (parsed === undefined) return undefined;
    const { response, length } = parsed;
    if (response.status < 200) return isLast(received.subarray(length), method);
    return length !== received.length || response.field('connection') === 'close';
  } catch {
    return true;
  }
}
