import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  request,
  type ServerResponse,
} from 'node:http';
import type { AskUpstream, LookupError, LookupResponse } from '../../../src/url-resolver/source.ts';

/** The resolver of a shop on a real socket. The test chooses its answers. */
export interface Shop {
  readonly port: number;
  readonly requests: { readonly url: string; readonly rawHeaders: readonly string[] }[];
  /** Answers the next requests. */
  handler: RequestListener;
  readonly ask: AskUpstream;
  close(): Promise<void>;
}

export const jsonApi = 'application/vnd.api+json';

/** `url` -> [entityType, entityId]; everything else is 404 with code 2802. */
export function catalogue(urls: Record<string, readonly [string, string]>): RequestListener {
  return (incoming, response) => {
    const url = new URL(incoming.url ?? '', 'http://shop').searchParams.get('url') ?? '';
    const found = urls[url];
    if (found === undefined) sendUnknown(response);
    else sendMapping(response, ...found);
  };
}

export function sendMapping(response: ServerResponse, entityType: string, entityId: string): void {
  response.writeHead(200, { 'Content-Type': jsonApi, 'Cache-Control': 'no-cache, private' });
  response.end(documentOf(entityType, entityId));
}

export function documentOf(entityType: string, entityId: string): string {
  const links = { self: 'http://glue.internal/url-resolver' };
  const element = { type: 'url-resolver', id: null, attributes: { entityType, entityId }, links };
  return JSON.stringify({ data: [element], links });
}

export function sendUnknown(response: ServerResponse, code = '2802'): void {
  response.writeHead(404, { 'Content-Type': jsonApi });
  response.end(JSON.stringify({ errors: [{ detail: 'Url not found.', status: 404, code }] }));
}

export async function startShop(handler: RequestListener): Promise<Shop> {
  const requests: Shop['requests'] = [];
  const server = createServer((incoming, response) => {
    requests.push({ url: incoming.url ?? '', rawHeaders: incoming.rawHeaders });
    shop.handler(incoming, response);
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  const { port } = address;
  const shop: Shop = {
    port,
    requests,
    handler,
    ask: askOver(port),
    close: () =>
      new Promise((closed) => {
        server.close(() => closed());
        server.closeAllConnections();
      }),
  };
  return shop;
}

/** Asks the shop with node:http, without redirects and decoding: a complete body, or a fault. */
export function askOver(port: number): AskUpstream {
  return ({ target, fields, timeoutMs, maxBodyBytes }) =>
    new Promise<LookupResponse | LookupError>((resolve) => {
      const named = fields.some((name, i) => i % 2 === 0 && name.toLowerCase() === 'host');
      const headers = named ? fields : ['Host', `127.0.0.1:${port}`, ...fields];
      const outgoing = request({
        host: '127.0.0.1',
        port,
        path: target,
        headers: [...headers],
        agent: false,
      });
      const timer = setTimeout(() => {
        resolve({ fault: 'timeout' });
        outgoing.destroy();
      }, timeoutMs);
      const end = (reply: LookupResponse | LookupError) => {
        clearTimeout(timer);
        resolve(reply);
      };
      outgoing.on('error', () => end({ fault: 'unreachable' }));
      outgoing.on('response', (incoming: IncomingMessage) => {
        const chunks: Buffer[] = [];
        let length = 0;
        incoming.on('data', (chunk: Buffer) => {
          chunks.push(chunk);
          length += chunk.length;
          if (length <= maxBodyBytes) return;
          end({ fault: 'too-large' });
          outgoing.destroy();
        });
        incoming.on('error', () => end({ fault: 'invalid' }));
        incoming.on('end', () =>
          end({
            status: incoming.statusCode ?? 0,
            fields: incoming.rawHeaders,
            body: Buffer.concat(chunks),
          }),
        );
      });
      outgoing.end();
    });
}
