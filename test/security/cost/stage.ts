import net from 'node:net';
import { listen } from '../../harness/listen.ts';
import { openRawConnection, type RawConnection, type RawResponse } from '../../harness/raw-client.ts';
import { startShopwardHere } from '../../harness/shopward-here.ts';

export type Stage = Awaited<ReturnType<typeof openStage>>;

/** The whole proxy in this process, so that its CPU time can be measured, over real sockets, with a scripted shop. */
export async function openStage() {
  const shop = await openShop();
  const shopward = await startShopwardHere({
    upstream: `http://127.0.0.1:${shop.port}`,
    config: {
      log: { level: 'silent' },
      trustedProxies: ['127.0.0.1'],
      limits: { bodyTimeout: '10m' },
      cors: { origins: ['https://shop.example'] },
    },
  });
  const [client, operator] = [new KeptConnection(shopward.port), new KeptConnection(shopward.adminPort)];
  return {
    port: shopward.port,
    /** Sends the octets, on the connection of the last call if it is still open. */
    send: (octets: string | Buffer) => client.send(octets),
    /** The same to the admin port. */
    sendToAdmin: (octets: string | Buffer) => operator.send(octets),
    answerWith: shop.answerWith,
    authorization: `Authorization: Bearer ${shopward.issueToken()}\r\n`,
    async close() {
      client.close();
      operator.close();
      await shop.close();
      await shopward.stop();
    },
  };
}

/** A shop whose answer is set by `answerWith`. */
export async function openShop() {
  let answer: string | Buffer = '';
  let isKept = false;
  const server = net.createServer((socket) => {
    let received: Buffer = Buffer.alloc(0);
    socket.on('error', () => {});
    socket.on('data', (chunk: Buffer) => {
      received = received.length === 0 ? chunk : Buffer.concat([received, chunk]);
      if (isKept && !isWhole(received)) return;
      received = Buffer.alloc(0);
      // Without `isKept` the shop answers at once, and discards the rest of the request.
      if (isKept) socket.write(answer);
      else socket.removeAllListeners('data').resume().end(answer);
    });
  });
  return {
    ...(await listen(server)),
    /** Sets the answer of the shop. `isToBeKept`: the octets state their length, and the connection stays open. */
    answerWith: (octets: string | Buffer, isToBeKept = false) => {
      answer = octets;
      isKept = isToBeKept;
    },
  };
}

/** Whether the request is complete, by the framing that the proxy uses. */
function isWhole(request: Buffer): boolean {
  const headEnd = request.indexOf('\r\n\r\n');
  if (headEnd === -1) return false;
  const [, isChunked, length] = framing.exec(request.toString('latin1', 0, headEnd)) ?? [];
  if (isChunked !== undefined) return request.subarray(-5).equals(lastChunk);
  return request.length >= headEnd + 4 + Number(length ?? 0);
}

const framing = /\r\n(?:(transfer-encoding: chunked)|content-length: (\d+))/i;
const lastChunk = Buffer.from('0\r\n\r\n');

/**
 * Sends requests one after another on one connection while both sides keep it open: opening one costs several times as
 * much as most exchanges.
 */
export class KeptConnection {
  readonly #port: number;
  #kept: RawConnection | undefined;

  constructor(port: number) {
    this.#port = port;
  }

  /** Resolves to the final answer; undefined: none, or one that cannot be read. */
  async send(octets: string | Buffer): Promise<RawResponse | undefined> {
    const kept = this.#kept;
    // Without an answer, the connection was closed before this request, which is sent again.
    const answer = kept === undefined ? undefined : await this.#exchange(kept, octets);
    return answer ?? this.#exchange(await openRawConnection(this.#port), octets);
  }

  close(): void {
    this.#kept?.close();
  }

  async #exchange(connection: RawConnection, octets: string | Buffer): Promise<RawResponse | undefined> {
    const method = octets.slice(0, 8).toString().split(' ')[0];
    // The answer may come before the request has been read to its end.
    connection.write(Buffer.from(octets)).catch(() => {});
    this.#kept = connection;
    try {
      let answer = await connection.readResponse(method);
      while (answer.status < 200) answer = await connection.readResponse(method);
      const isKept = answer.complete && answer.field('connection') !== 'close';
      if (isKept && connection.pending().length === 0) return answer;
      this.#drop(connection);
      return answer;
    } catch {
      this.#drop(connection);
      return undefined;
    }
  }

  #drop(connection: RawConnection): void {
    connection.close();
    this.#kept = undefined;
  }
}
