import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { parseResponse, type RawResponse } from './raw-response.ts';

export type { RawResponse } from './raw-response.ts';

/** Only a hang takes longer. */
const patienceMs = 60_000;

export interface RawConnectionOptions {
  readonly host?: string;
  /** How long each read may wait before it rejects. Default 60000. */
  readonly timeoutMs?: number;
}

/** A client that sends exactly the given bytes and reads responses as RFC 9112 section 6.3 frames them. */
export interface RawConnection {
  readonly socket: Socket;
  /** Strings are sent as latin-1, one octet per character. Resolves when the kernel has the bytes. */
  write(bytes: string | Uint8Array): Promise<void>;
  /** Half-closes the connection: responses can still be read. */
  end(): void;
  /**
   * The next response, interim ones (1xx) included. `method` is that of the request: a response to HEAD has no body. If
   * the connection ends inside the body, `complete` is false; if it ends inside the head, this rejects.
   */
  readResponse(method?: string): Promise<RawResponse>;
  /** Resolves with all unread bytes once the other side has closed. */
  readAll(): Promise<Buffer>;
  /** Bytes that have arrived and are unread. */
  pending(): Buffer;
  close(): void;
}

export async function openRawConnection(
  port: number,
  { host = '127.0.0.1', timeoutMs = patienceMs }: RawConnectionOptions = {},
): Promise<RawConnection> {
  const socket = connect({ port, host, noDelay: true, allowHalfOpen: true });
  await once(socket, 'connect', { signal: AbortSignal.timeout(patienceMs) });

  let received: Buffer = Buffer.alloc(0);
  let ending: 'fin' | 'reset' | undefined;
  let wake: () => void = () => {};
  socket.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
    wake();
  });
  for (const [event, how] of [
    ['end', 'fin'],
    ['error', 'reset'],
    ['close', 'fin'],
  ] as const) {
    socket.on(event, () => {
      ending ??= how;
      wake();
    });
  }

  /** Calls `attempt` after each event until it gives a result. */
  function poll<T>(what: string, attempt: () => T | undefined): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const timer = setTimeout(() => {
      reject(new Error(`${what}: nothing after ${timeoutMs} ms; received ${preview(received)}`));
    }, timeoutMs);
    wake = () => {
      try {
        const result = attempt();
        if (result !== undefined) resolve(result);
      } catch (error) {
        reject(error);
      }
    };
    wake();
    return promise.finally(() => {
      clearTimeout(timer);
      wake = () => {};
    });
  }

  return {
    socket,
    write: (bytes) =>
      new Promise((resolve, reject) => {
        const octets = typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes;
        socket.write(octets, (error) => (error ? reject(error) : resolve()));
      }),
    end: () => void socket.end(),
    readResponse: (method = 'GET') =>
      poll('readResponse', () => {
        const parsed = parseResponse(received, method, ending);
        if (parsed === undefined && ending !== undefined) {
          throw new Error(`connection closed (${ending}) before a response; received ${preview(received)}`);
        }
        if (parsed !== undefined) received = received.subarray(parsed.length);
        return parsed?.response;
      }),
    readAll: () =>
      poll('readAll', () => {
        if (ending === undefined) return undefined;
        const all = received;
        received = Buffer.alloc(0);
        return all;
      }),
    pending: () => received,
    close: () => void socket.destroy(),
  };
}

/** Opens a connection, sends the bytes, reads one response, closes. */
export async function exchangeRaw(
  port: number,
  bytes: string | Uint8Array,
  method = 'GET',
): Promise<RawResponse> {
  const connection = await openRawConnection(port);
  try {
    await connection.write(bytes);
    return await connection.readResponse(method);
  } finally {
    connection.close();
  }
}

function preview(bytes: Buffer): string {
  return JSON.stringify(bytes.subarray(0, 200).toString('latin1'));
}
