import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** One request as the upstream's own parser read it. */
export interface EchoedRequest {
  readonly method: string;
  /** `req.url` of node:http. */
  readonly target: string;
}

/** A `node:http` server that answers with the request it read, and records all bytes. */
export interface EchoUpstream {
  readonly port: number;
  /** Keyed by X-Request-Id. */
  readonly requests: ReadonlyMap<string, EchoedRequest>;
  /** All request lines in the bytes, connection by connection. Requests have no bodies here. */
  requestLines(): string[];
  close(): Promise<void>;
}

export async function startEchoUpstream(): Promise<EchoUpstream> {
  const requests = new Map<string, EchoedRequest>();
  const received: string[][] = [];
  const server = createServer((request, response) => {
    const echoed = { method: request.method ?? '', target: request.url ?? '' };
    requests.set(String(request.headers['x-request-id']), echoed);
    response.end(request.method === 'HEAD' ? undefined : JSON.stringify(echoed));
  });
  server.on('connection', (socket) => {
    const chunks: string[] = [];
    received.push(chunks);
    socket.on('data', (chunk: Buffer) => chunks.push(chunk.toString('latin1')));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    requests,
    requestLines: () =>
      received.flatMap((chunks) => chunks.join('').split('\r\n\r\n').slice(0, -1).map(firstLine)),
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

function firstLine(head: string): string {
  return head.slice(0, head.indexOf('\r\n'));
}
