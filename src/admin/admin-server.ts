import { createHash, timingSafeEqual } from 'node:crypto';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Readiness {
  readonly ready: boolean;
  /** Words for people: why not, or what limps although requests are served. */
  readonly reasons: readonly string[];
}

/** An endpoint of the admin port beyond the three that are always there. */
export interface AdminEndpoint {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  /** Gets the JSON body of a POST; its answer is sent as JSON. */
  run(body: unknown): AdminAnswer | Promise<AdminAnswer>;
}

export interface AdminAnswer {
  readonly status: number;
  readonly body: unknown;
}

export interface AdminOptions {
  readonly host: string;
  readonly port: number;
  /** Required off loopback: `Authorization: Bearer <token>` for all but /livez and /readyz. */
  readonly token?: string | undefined;
  /** Host names, besides loopback's own, by which the port may be addressed (against DNS rebinding). */
  readonly hosts: readonly string[];
  readiness(): Readiness;
  metrics(): Promise<{ contentType: string; body: string }>;
  readonly endpoints: readonly AdminEndpoint[];
}

export interface AdminServer {
  listen(): Promise<AddressInfo>;
  close(): Promise<void>;
}

const longestBody = 64 * 1024;

/** Health, metrics and the few actions of operators, on a port of its own that no client of the shop reaches. */
export function createAdminServer(options: AdminOptions): AdminServer {
  const server = http.createServer((request, response) => {
    response.setHeader('X-Content-Type-Options', 'nosniff');
    response.setHeader('Cache-Control', 'no-store');
    serve(options, request, response).catch(() => send(response, 500, { error: 'internal error' }));
  });
  return {
    listen: () =>
      new Promise((resolve, reject) => {
        server.once('error', reject);
        server.listen(options.port, options.host, () => resolve(server.address() as AddressInfo));
      }),
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function serve(options: AdminOptions, request: IncomingMessage, response: ServerResponse) {
  const path = (request.url ?? '').split('?', 1)[0] as string;
  const isAllowed = hasToken(options, request);
  if (request.method === 'GET' && path === '/livez') return send(response, 200, { status: 'ok' });
  if (request.method === 'GET' && path === '/readyz') {
    const { ready, reasons } = options.readiness();
    const status = ready ? 'ready' : 'not ready';
    return send(response, ready ? 200 : 503, isAllowed ? { status, reasons } : { status });
  }
  if (!isKnownHost(options, request)) return send(response, 421, { error: 'unknown Host; see admin.hosts' });
  if (!isAllowed) {
    response.setHeader('WWW-Authenticate', 'Bearer realm="shopward admin"');
    return send(response, 401, { error: 'admin.token is needed' });
  }
  if (request.method === 'GET' && path === '/metrics') {
    const { contentType, body } = await options.metrics();
    response.setHeader('Content-Type', contentType);
    return void response.end(body);
  }
  const endpoint = options.endpoints.find((one) => one.path === path && one.method === request.method);
  if (!endpoint) return send(response, 404, { error: 'not found' });
  if (endpoint.method === 'POST' && !isSameOrigin(request)) {
    return send(response, 403, { error: 'cross-origin' });
  }
  const body = endpoint.method === 'POST' ? await readJson(request) : undefined;
  if (body === invalid) return send(response, 400, { error: 'the body must be JSON, 64 KiB at most' });
  const answer = await endpoint.run(body);
  send(response, answer.status, answer.body);
}

function hasToken(options: AdminOptions, request: IncomingMessage): boolean {
  if (options.token === undefined) return true;
  const given = /^bearer +(.+)$/i.exec(request.headers.authorization ?? '')?.[1] ?? '';
  // Digests have one length, so that comparing takes one time whatever was sent.
  return timingSafeEqual(digest(given), digest(options.token));
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

function isKnownHost(options: AdminOptions, request: IncomingMessage): boolean {
  const name = (request.headers.host ?? '').replace(/:\d+$/, '').toLowerCase();
  return ['localhost', '127.0.0.1', '[::1]', options.host, ...options.hosts].includes(name);
}

/** Browsers name the origin of a write; a page of another one must not command this port. */
function isSameOrigin(request: IncomingMessage): boolean {
  const { origin, host } = request.headers;
  return origin === undefined || origin === `http://${host}` || origin === `https://${host}`;
}

const invalid = Symbol('invalid');

async function readJson(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request) {
    length += chunk.length;
    if (length > longestBody) return invalid;
    chunks.push(chunk);
  }
  if (length === 0) return {};
  try {
    return JSON.parse(Buffer.concat(chunks).toString());
  } catch {
    return invalid;
  }
}

function send(response: ServerResponse, status: number, body: unknown): void {
  if (response.headersSent) return void response.destroy();
  response.writeHead(status, { 'Content-Type': 'application/json' });
  response.end(`${JSON.stringify(body)}\n`);
}
