import { createServer, type RequestListener, type ServerResponse } from 'node:http';
import { afterEach, beforeEach } from 'vitest';
import { createAskUpstream } from '../../../src/app/url-resolver.ts';
import type { ClientOptions } from '../../../src/upstream/port.ts';
import type { AskUpstream } from '../../../src/url-resolver/source.ts';
import { clientOf } from '../upstream/direct-client.ts';
import { listen } from '../../harness/listen.ts';

export type Shop = Awaited<ReturnType<typeof startShop>>;

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

/** The resolver of a shop on a real socket. The test chooses its answers: `handler` answers the next requests. */
export async function startShop(handler: RequestListener) {
  const requests: { readonly url: string; readonly rawHeaders: readonly string[] }[] = [];
  const server = createServer((incoming, response) => {
    requests.push({ url: incoming.url ?? '', rawHeaders: incoming.rawHeaders });
    shop.handler(incoming, response);
  });
  const { port, close } = await listen(server);
  const shop = { port, requests, handler, ask: askOver(port), close };
  return shop;
}

/** Asks the shop as the application does. */
export function askOver(port: number, more: Partial<ClientOptions> = {}): AskUpstream {
  return createAskUpstream(clientOf(port, { connections: 64, ...more }), `127.0.0.1:${port}`);
}

/** A shop with this catalogue for each test of a file. */
export function useShop(urls: Parameters<typeof catalogue>[0]): () => Shop {
  let shop: Shop;
  beforeEach(async () => {
    shop = await startShop(catalogue(urls));
  });
  afterEach(() => shop.close());
  return () => shop;
}
