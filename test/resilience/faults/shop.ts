import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A correct upstream for every kind of route; faults are added in front of it. */
export interface FaultShop {
  readonly port: number;
  /** Answers instead of the shop; undefined: the shop answers. */
  instead: ((response: ServerResponse) => void) | undefined;
  close(): void;
}

/** Makes bodies longer than any cut in the tables. */
const padding = 'x'.repeat(400);

export async function startFaultShop(): Promise<FaultShop> {
  const versions = new Map<string, number>();
  const server = createServer(async (request, response) => {
    const body = await readBody(request).catch(() => undefined);
    if (body === undefined) return;
    if (shop.instead !== undefined) return shop.instead(response);
    const { status, data } = answer(request, versions);
    const text = JSON.stringify({ data, padding });
    response
      .writeHead(status, { 'Content-Type': 'application/vnd.api+json', 'Content-Length': text.length })
      .end(text);
  });
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const shop: FaultShop = {
    port: (server.address() as AddressInfo).port,
    instead: undefined,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
  return shop;
}

function answer(request: IncomingMessage, versions: Map<string, number>): { status: number; data: unknown } {
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://shop.example');
  const [, type = '', id = '', child] = pathname.split('/');
  if (type === 'url-resolver') {
    const attributes = { entityType: 'abstract-products', entityId: searchParams.get('url') };
    return { status: 200, data: [{ type: 'url-resolver', id: null, attributes }] };
  }
  if (type === 'refresh-tokens') {
    const attributes = {
      tokenType: 'Bearer',
      expiresIn: 600,
      accessToken: 'a.b.c',
      refreshToken: `new-${id}`,
    };
    return { status: 201, data: { type: 'refresh-tokens', id: null, attributes } };
  }
  const version = versions.get(id) ?? 1;
  if (request.method !== 'GET') versions.set(id, version + 1);
  const status = child === undefined || request.method === 'GET' ? 200 : 201;
  return { status, data: { type, id, attributes: { version: versions.get(id) ?? 1 } } };
}

async function readBody(request: IncomingMessage): Promise<string> {
  let body = '';
  for await (const chunk of request) body += chunk;
  return body;
}
