import { createServer } from 'node:http';
import { listen } from './listen.ts';

export type EchoUpstream = Awaited<ReturnType<typeof startEchoUpstream>>;

/** A `node:http` server that answers with the request it read, and records all bytes. */
export async function startEchoUpstream() {
  /** Each request as the upstream's own parser read it, by X-Request-Id. */
  const requests = new Map<string, { readonly method: string; readonly target: string }>();
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
  return {
    ...(await listen(server)),
    requests,
    /** All request lines in the bytes, connection by connection. Requests have no bodies here. */
    requestLines: () =>
      received.flatMap((chunks) => chunks.join('').split('\r\n\r\n').slice(0, -1).map(firstLine)),
  };
}

function firstLine(head: string): string {
  return head.slice(0, head.indexOf('\r\n'));
}
