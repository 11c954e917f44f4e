import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { createServer, stopParserWhen } from '../http/node-http.ts';
import { endResponse } from '../http/write-response.ts';
import { isolate, isolated } from '../lib/faults.ts';
import { PerTick } from '../lib/per-tick.ts';
import { type AdminEndpoint, askEndpoint, readJsonBody } from './admin-endpoint.ts';
import { type Admission, type AdmissionOptions, boundConnections, createAdmission } from './admission.ts';
import { listDocPages, renderDocPage } from './doc-pages.ts';

export interface Readiness {
  readonly ready: boolean;
  /** For people: why it is not ready, or which parts are degraded while requests are still served. */
  readonly reasons: readonly string[];
}

/** Exported for its tests. */
export interface AdminOptions extends AdmissionOptions {
  readonly port: number;
  readiness(): Readiness | Promise<Readiness>;
  metrics(): Promise<string>;
  readonly endpoints: readonly AdminEndpoint[];
  /** Milliseconds within which a request must arrive, its head within a third of this. Default: 30000. Only tests set it. */
  readonly requestTimeoutMs?: number;
  /** Receives an unexpected error of an endpoint (the client got 500), to be logged. */
  onFault?(fault: unknown): void;
}

export interface AdminServer {
  listen(): Promise<AddressInfo>;
  /** Replaces `admin.token`; the old one is refused from then on. */
  useToken(token: string): void;
  close(): Promise<void>;
}

/** Longest body of a POST; a longer one gets 413. */
const maxBodyBytes = 64 * 1024;

const defaultRequestTimeoutMs = 30_000;
/** Many more than an operator, a scraper and some probes need. */
const maxConnections = 64;
const idleTimeoutMs = 60_000;

/** Health, metrics, the console page and its API, on a port that clients of the shop must not be able to reach. */
export function createAdminServer(options: AdminOptions): AdminServer {
  const admission = createAdmission(options);
  const { requestTimeoutMs = defaultRequestTimeoutMs } = options;
  const limits = {
    headersTimeout: Math.ceil(requestTimeoutMs / 3),
    requestTimeout: requestTimeoutMs,
    keepAliveTimeout: 10_000,
    connectionsCheckingInterval: Math.min(2_000, requestTimeoutMs),
    maxHeaderSize: 16 * 1024,
  };
  // A page of metrics takes milliseconds: a crowd at the admin port must not delay the clients of the shop.
  const oneInEachTick = new PerTick(1);
  const server = createServer(limits, (incoming, response) => {
    oneInEachTick.run(() => serve(incoming, response));
  });
  const bound = isolated((socket: Socket) => stopParserWhen(socket, isCostly));
  server.on('connection', bound);
  const serve = (incoming: IncomingMessage, response: ServerResponse) => {
    if (incoming.socket.destroyed) return;
    response.on('error', () => response.destroy());
    response.setHeader('X-Content-Type-Options', 'nosniff');
    response.setHeader('Cache-Control', 'no-store');
    response.setHeader('Cross-Origin-Resource-Policy', 'same-origin');
    answer(incoming, response).catch((fault) => {
      isolate(
        () => {
          if (!incoming.destroyed || incoming.complete) options.onFault?.(fault);
          send(response, 500, { error: 'internal error' });
        },
        () => response.destroy(),
      );
    });
  };
  const answer = createAnswer(options, admission, boundConnections(server, maxConnections));
  server.setTimeout(idleTimeoutMs);
  return {
    listen: () =>
      new Promise((resolve, reject) => {
        server.once('error', reject);
        server.listen(options.port, options.host, () => resolve(server.address() as AddressInfo));
      }),
    useToken: admission.useToken,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** No probe, scraper or browser sends such requests or chunks; Node parses thousands of either at once. */
function isCostly({ socket, headers }: IncomingMessage): boolean {
  // Node keeps the response that is not sent yet there, also its own to a request without a Host.
  const { _httpMessage: unsent } = socket as { _httpMessage?: ServerResponse | null };
  return headers['transfer-encoding'] !== undefined || Boolean(unsent);
}

function createAnswer(
  options: AdminOptions,
  admission: Admission,
  markOperator: ReturnType<typeof boundConnections>,
) {
  const assets = createConsoleAssets();
  const endpoints = Map.groupBy(options.endpoints, ({ path }) => path);

  return async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    const [path = '', ...rest] = (incoming.url ?? '').split('?');
    const query = rest.join('?');
    const method = incoming.method === 'HEAD' ? 'GET' : (incoming.method ?? '');
    const { headers } = incoming;
    const isKnownHost = admission.isKnownHost(headers);
    const isAllowed = admission.hasToken(headers);

    // Probes use an IP address and have no token: they are answered, but get only the status.
    if (path === '/livez' || path === '/readyz') {
      if (method !== 'GET') return refuseMethod(response, ['GET', 'HEAD']);
      if (path === '/livez') return send(response, 200, { status: 'ok' });
      const { ready, reasons } = await options.readiness();
      const status = ready ? 'ready' : 'not ready';
      return send(response, ready ? 200 : 503, isAllowed && isKnownHost ? { status, reasons } : { status });
    }
    if (!isKnownHost) return send(response, 421, { error: 'unknown Host; see admin.hosts' });

    const asset = method === 'GET' ? await assets.find(path) : undefined;
    // The page contains no data of this installation, so it needs no token; it asks the user for one.
    if (asset?.isPage && !isAllowed) challenge(response);
    if (asset) return assets.send(asset, incoming, response, asset.isPage && !isAllowed ? 401 : 200);
    if (!isAllowed) {
      challenge(response);
      return send(response, 401, { error: 'the admin token is needed: Authorization: Bearer <admin.token>' });
    }
    markOperator(incoming.socket, response);
    if (path === '/metrics' && method === 'GET') {
      const text = await options.metrics();
      response.setHeader('Content-Type', 'text/plain; version=0.0.4; charset=utf-8');
      return void response.end(text);
    }

    const candidates = endpoints.get(path) ?? [];
    const endpoint = candidates.find((one) => one.method === method);
    if (endpoint === undefined) {
      const allowed = path === '/metrics' ? ['GET'] : candidates.map((one) => one.method);
      return allowed.length > 0
        ? refuseMethod(response, allowed)
        : send(response, 404, { error: 'not found' });
    }
    if (!admission.isSameOrigin(headers)) return send(response, 403, { error: 'cross-origin' });
    const body =
      endpoint.method === 'GET' ? { value: undefined } : await readJsonBody(incoming, maxBodyBytes);
    if ('value' in body) {
      const answer = await askEndpoint(endpoint, query, body.value);
      return send(response, answer.status, answer.body);
    }
    if (body.fault === 'malformed') return send(response, 400, { error: 'the body must be JSON in UTF-8' });
    refuseBody(incoming, response);
  };
}

function challenge(response: ServerResponse): void {
  response.setHeader('WWW-Authenticate', 'Bearer realm="shopward admin"');
}

/** Answers without waiting for the rest of the body, in a way that lets the client read the answer. */
function refuseBody(incoming: IncomingMessage, response: ServerResponse): void {
  const text = `${JSON.stringify({ error: `the body must not be longer than ${maxBodyBytes} bytes` })}\n`;
  response.writeHead(413, { 'Content-Type': 'application/json', Connection: 'close' });
  endResponse(incoming, response, Buffer.from(text));
}

function refuseMethod(response: ServerResponse, allowed: readonly string[]): void {
  response.setHeader('Allow', allowed.join(', '));
  send(response, 405, { error: 'the method is not allowed here' });
}

function send(response: ServerResponse, status: number, body: unknown): void {
  if (response.headersSent) return void response.destroy();
  response.writeHead(status, { 'Content-Type': 'application/json' });
  response.end(`${JSON.stringify(body)}\n`);
}

interface ConsoleAsset {
  readonly type: string;
  readonly entityTag: string;
  readonly content: Buffer;
  readonly isPage: boolean;
}

/** Files of the chart library. The build copies them beside the page; a source tree has them in node_modules. */
const chartFiles = ['uPlot.esm.js', 'uPlot.min.css'];

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** Nothing inline, nothing from another origin, and no markup made from strings (`require-trusted-types-for`). */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

/** The files of the console page, read at the start, and the pages of docs/: no path from a request reaches the file system. */
function createConsoleAssets() {
  const folder = fileURLToPath(new URL('console', import.meta.url));
  const assets = new Map<string, ConsoleAsset>();
  const names = readdirSync(folder);
  const isCopied = chartFiles.every((name) => names.includes(name));
  const chartFolder = isCopied ? folder : path.dirname(fileURLToPath(import.meta.resolve('uplot')));
  const add = (address: string, type: string, content: Buffer, isPage: boolean) => {
    const entityTag = `"${createHash('sha256').update(content).digest('base64url').slice(0, 22)}"`;
    const asset = { type, entityTag, content, isPage };
    assets.set(address, asset);
    return asset;
  };
  for (const name of new Set([...names, ...chartFiles])) {
    const type = types[path.extname(name)];
    if (type === undefined) continue;
    const content = readFileSync(path.join(chartFiles.includes(name) ? chartFolder : folder, name));
    const isPage = name === 'index.html';
    add(isPage ? '/' : `/console/${name}`, type, content, isPage);
  }
  const docs = new Set(listDocPages().map((name) => `/docs/${name}`));
  return {
    /** `/`: the page; `/console/<name>`: the files that it loads; `/docs/<name>`: a page of docs/, rendered when first asked for. */
    async find(address: string): Promise<ConsoleAsset | undefined> {
      const known = assets.get(address);
      if (known !== undefined || !docs.has(address)) return known;
      const page = await renderDocPage(path.basename(address));
      return page === undefined ? undefined : add(address, types['.html'] ?? '', Buffer.from(page), false);
    },
    send(
      { type, entityTag, content }: ConsoleAsset,
      incoming: IncomingMessage,
      response: ServerResponse,
      status: 200 | 401,
    ): void {
      response.setHeader('Content-Security-Policy', contentSecurityPolicy);
      response.setHeader('Referrer-Policy', 'no-referrer');
      response.setHeader('Cross-Origin-Opener-Policy', 'same-origin');
      response.setHeader('X-Frame-Options', 'DENY');
      response.setHeader('Cache-Control', status === 200 ? 'no-cache' : 'no-store');
      response.setHeader('ETag', entityTag);
      if (status === 200 && incoming.headers['if-none-match'] === entityTag) {
        response.writeHead(304);
        response.end();
        return;
      }
      response.writeHead(status, { 'Content-Type': type, 'Content-Length': content.length });
      response.end(incoming.method === 'HEAD' ? undefined : content);
    },
  };
}
