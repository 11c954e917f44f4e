import net from 'node:net';
import { startShopwardHere } from '../../harness/shopward-here.ts';
import { KeptConnection } from './kept-connection.ts';

/** The whole proxy in this process, so that its CPU time can be measured, over real sockets, with a scripted shop. */
export interface Stage {
  /** Sends the octets, on the connection of the last call if it is still open; resolves to the beginning of the answer. */
  send(octets: string | Buffer): Promise<string>;
  /** The same to the admin port. */
  sendToAdmin(octets: string | Buffer): Promise<string>;
  answerWith: Shop['answerWith'];
  readonly authorization: string;
  close(): Promise<void>;
}

export async function openStage(): Promise<Stage> {
  const shop = await openShop();
  const shopward = await startShopwardHere({
    upstream: `http://127.0.0.1:${shop.port}`,
    config: {
      log: { level: 'silent' },
      trustedProxies: ['127.0.0.1'],
      cors: { origins: ['https://shop.example'] },
    },
  });
  const [client, operator] = [new KeptConnection(shopward.port), new KeptConnection(shopward.adminPort)];
  return {
    send: (octets) => client.send(octets),
    sendToAdmin: (octets) => operator.send(octets),
    answerWith: shop.answerWith,
    authorization: `Authorization: Bearer ${shopward.issueToken()}\r\n`,
    async close() {
      client.close();
      operator.close();
      shop.close();
      await shopward.stop();
    },
  };
}

export interface Shop {
  readonly port: number;
  /** Sets the answer of the shop. `isKept`: the octets state their length, and the shop leaves the connection open. */
  answerWith(octets: string | Buffer, isKept?: boolean): void;
  close(): void;
}

/** A shop whose answer is set by `answerWith`. */
export async function openShop(): Promise<Shop> {
  let answer: string | Buffer = '';
  let isKept = false;
  const sockets = new Set<net.Socket>();
  const server = net.createServer((socket) => {
    let received: Buffer = Buffer.alloc(0);
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('data', (chunk: Buffer) => {
      received = received.length === 0 ? chunk : Buffer.concat([received, chunk]);
      if (isKept && !isWhole(received)) return;
      received = Buffer.alloc(0);
      // Without `isKept` the shop answers at once, and discards the rest of the request.
      if (isKept) socket.write(answer);
      else socket.removeAllListeners('data').resume().end(answer);
    });
    socket.once('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as net.AddressInfo).port,
    answerWith: (octets, isToBeKept = false) => {
      answer = octets;
      isKept = isToBeKept;
    },
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
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

/** The longest wait for the beginning of an answer; only a hang takes as long. */
const patienceMs = 20_000;

/** Sends octets on a new connection; resolves to the beginning of the answer, or to an error code. */
export function sendOctets(port: number, octets: string | Buffer): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = net.connect(port, '127.0.0.1');
    const late = setTimeout(() => socket.destroy(new Error('no answer')), patienceMs);
    const end = (text: string) => {
      clearTimeout(late);
      socket.destroy();
      resolve(text);
    };
    socket.setNoDelay(true);
    socket.once('data', (data) => end(data.toString('latin1', 0, 200)));
    socket.once('end', () => end(''));
    // The request was refused before it was read to its end.
    socket.once('error', (fault: NodeJS.ErrnoException) =>
      fault.code === undefined ? reject(fault) : end(fault.code),
    );
    socket.write(octets);
  });
}
