import net from 'node:net';
import { parseResponse } from '../../harness/raw-response.ts';

/** An answer that has not come by then is none; only a hang takes as long. */
const patienceMs = 20_000;

/**
 * One exchange after the other on one connection, for as long as both sides leave it open: to open one costs several times
 * what most exchanges do.
 */
export class KeptConnection {
  readonly #port: number;
  #socket: net.Socket | undefined;

  constructor(port: number) {
    this.#port = port;
  }

  /** Resolves with the beginning of the answer when all of it has come; empty: there was none. */
  async send(octets: string | Buffer): Promise<string> {
    // One that ended while nothing was asked says nothing more.
    const kept = this.#socket?.destroyed === false ? this.#socket : undefined;
    // One that was closed since its last answer has read nothing of this request.
    const answer = kept === undefined ? undefined : await this.#exchange(kept, octets);
    return answer ?? (await this.#exchange(this.#open(), octets)) ?? '';
  }

  #open(): net.Socket {
    // How it ended is heard as its end.
    return net
      .connect(this.#port, '127.0.0.1')
      .setNoDelay(true)
      .on('error', () => {});
  }

  close(): void {
    this.#socket?.destroy();
  }

  /** Undefined: it ended without an answer. */
  async #exchange(socket: net.Socket, octets: string | Buffer): Promise<string | undefined> {
    const { received, isOver } = await exchangeOn(socket, octets);
    this.#socket = isOver ? undefined : socket;
    if (isOver) socket.destroy();
    return received.length === 0 ? undefined : received.toString('latin1', 0, 200);
  }
}

/** `isOver`: nothing more is to be sent on it. */
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
  const onData = (piece: Buffer) => {
    received = received.length === 0 ? piece : Buffer.concat([received, piece]);
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

/** Whether the answer closes its connection; undefined: more of it has to come. */
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
