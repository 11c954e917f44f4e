import type { ClientRequest, IncomingMessage } from 'node:http';
import { createRequire } from 'node:module';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { createProxyServer } from 'http-proxy-3';
import type { CanonicalRequest } from '../http/canonical-request.ts';
import type { FieldList } from '../http/field-list.ts';
import { type Rejection, reject } from '../http/rejection.ts';
import { isolated } from '../lib/faults.ts';
import { fieldsToObject } from './request-framing.ts';
import { verification } from './upstream-tls.ts';
import { Handshake, targetOf, type WebSocketOptions, type WebSocketResult } from './websocket-handshake.ts';

export interface WebSocketForwarder {
  /**
   * Takes over a client's socket whose request passed every check. `refuse` must write its refusal within its call,
   * because the socket is ended right after it. Resolves when the handshake is over; never rejects.
   */
  forward(
    request: CanonicalRequest,
    socket: Duplex,
    head: Buffer,
    refuse: (rejection: Rejection) => void,
    editResponse?: (fields: FieldList) => FieldList,
  ): Promise<WebSocketResult>;
  readonly open: number;
  /** Ends every open WebSocket. */
  close(): void;
}

/**
 * WebSocket upgrades (RFC 6455) through http-proxy-3, and no other protocol.
 *
 * @throws {Error} if DEBUG makes http-proxy-3 log request paths, which may hold tokens, to standard error.
 */
export function createWebSocketForwarder(options: WebSocketOptions): WebSocketForwarder {
  refuseDebug();
  const { scheme, hostname, port } = options.upstream;
  const target = { protocol: `${scheme}:`, host: hostname, hostname, port };
  const proxy = createProxyServer({ target, toProxy: true, prependPath: false, secure: true });
  const handshakes = new WeakMap<object, Handshake>();
  const sockets = new Set<Duplex>();
  // The `close` event of a broken socket says all that is needed.
  proxy.on('error', () => {});
  proxy.on(
    'proxyReqWs',
    isolated(
      (upstream: ClientRequest, request: IncomingMessage) => handshakes.get(request)?.onRequest(upstream),
      (upstream) => upstream.destroy(new Error('not sent')),
    ),
  );

  return {
    forward: (request, socket, head, refuse, editResponse) =>
      new Promise((resolve) => {
        if (sockets.size >= options.limit) {
          const rejection = reject('overloaded', { reason: 'websockets', retryAfterSeconds: 1 });
          refuse(rejection);
          resolve({ status: 0, rejection, cause: undefined });
          return;
        }
        sockets.add(socket);
        // http-proxy-3 writes heads as text; a field value is octets (RFC 9110 section 5.5).
        (socket as Socket).setDefaultEncoding('latin1');
        const shape = requestShape(request, targetOf(request, options));
        const handshake = new Handshake(request, socket as Socket, options, refuse, resolve, editResponse);
        handshakes.set(shape, handshake);
        // One listener for everything: node takes more than ten listeners for a leak.
        const closed = isolated(() => {
          sockets.delete(socket);
          handshake.onClientGone();
        });
        socket.once('close', closed);
        try {
          proxy.ws(
            shape as unknown as IncomingMessage,
            socket as Socket,
            head,
            { connectTimeout: options.connectTimeoutMs, ssl: verification(options) },
            (error: Error) => handshake.onFault(error),
          );
        } catch (error) {
          handshake.onFault(error);
          socket.destroy();
        }
      }),
    get open() {
      return sockets.size;
    },
    close: () => {
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** What http-proxy-3 reads of a request: ours, with an upgrade of our own making. */
function requestShape(request: CanonicalRequest, url: string): object {
  const headers = { ...fieldsToObject(request.fields), connection: 'Upgrade', upgrade: 'websocket' };
  return { method: 'GET', url, headers, httpVersion: '1.1', httpVersionMajor: 1, on() {} };
}

function refuseDebug(): void {
  if (process.env.DEBUG === undefined) return;
  const require = createRequire(import.meta.url);
  const debug = createRequire(require.resolve('http-proxy-3'))('debug') as { enabled(name: string): boolean };
  if (!debug.enabled('http-proxy-3') && !debug.enabled('http-proxy-3:ws-incoming')) return;
  throw new Error('DEBUG makes http-proxy-3 log request paths, which may hold tokens; leave it out of DEBUG');
}
