import type { Agent, ClientRequest, IncomingMessage, ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import type { Socket } from 'node:net';
import type { Stream } from 'node:stream';
import { createProxyServer } from 'http-proxy-3';
import { isolated } from '../../lib/faults.ts';
import { openConnection } from '../connection.ts';
import { ConnectionPool } from '../connection-pool.ts';
import { type EngineOptions, responseHeadBytes, type UpstreamEngine } from '../engine.ts';
import { createPooledEngine } from '../pooled-exchange.ts';
import { HttpProxy3Connection, pieceBytes } from './connection.ts';
import { HttpProxy3Exchange, type HttpProxy3Pool, type SendThroughProxy } from './exchange.ts';

/**
 * Sends upstream requests through http-proxy-3, over connections of shopward's own pool. Of its options only those are set that
 * leave the request unchanged: `toProxy` without `prependPath` keeps the path, `selfHandleResponse` leaves the response to us.
 *
 * Throws when the environment would change what http-proxy-3 does (`FORCE_FETCH_PATH`), or make it log request paths, which
 * may hold token ids, to standard error (`DEBUG`).
 */
export function createHttpProxy3Engine(options: EngineOptions): UpstreamEngine {
  refuseEnvironment();
  const pool: HttpProxy3Pool = new ConnectionPool(options, (opened, failed) => {
    const piece = Buffer.allocUnsafeSlow(pieceBytes);
    const adopt = (socket: Socket) => new HttpProxy3Connection(socket, piece);
    return openConnection(options, piece, adopt, opened, failed);
  });
  const { scheme, hostname, port } = options.upstream;
  const proxy = createProxyServer({
    target: { protocol: `${scheme}:`, host: hostname, hostname, port },
    agent: createAgent(options),
    toProxy: true,
    prependPath: false,
    selfHandleResponse: true,
    secure: true,
  });
  proxy.on(
    'proxyRes',
    isolated(
      (response: IncomingMessage, request: IncomingMessage) => exchangeOf(request).onResponse(response),
      (response) => response.destroy(),
    ),
  );
  const onError = (error: Error, request: IncomingMessage) => exchangeOf(request).onError(error);
  const send: SendThroughProxy = (exchange) =>
    proxy.web(
      exchange as unknown as IncomingMessage,
      noResponse,
      // Members of `ssl` become options of Node's request, and so reach the agent.
      { buffer: exchange as unknown as Stream, ssl: { exchange, maxHeaderSize: responseHeadBytes } },
      onError,
    );

  return createPooledEngine(pool, (request, handler) => new HttpProxy3Exchange(request, handler, pool, send));
}

/** In place of the client's response, to whose end http-proxy-3 listens: it does nothing. */
const noResponse = { on() {}, finished: true, headersSent: false } as unknown as ServerResponse;

function exchangeOf(request: IncomingMessage): HttpProxy3Exchange {
  return request as unknown as HttpProxy3Exchange;
}

/** The part of `http.Agent` that Node's request uses. */
function createAgent({ upstream: { scheme } }: EngineOptions): Agent {
  const agent = {
    protocol: `${scheme}:`,
    defaultPort: scheme === 'https' ? 443 : 80,
    keepAlive: true,
    maxSockets: Number.POSITIVE_INFINITY,
    options: {},
    addRequest(request: ClientRequest, options: { exchange: HttpProxy3Exchange }) {
      options.exchange.attach(request);
    },
  };
  return agent as unknown as Agent;
}

function refuseEnvironment(): void {
  if (process.env.FORCE_FETCH_PATH !== undefined) {
    throw new Error('FORCE_FETCH_PATH is set: it switches http-proxy-3 to other framing rules; unset it');
  }
  if (process.env.DEBUG === undefined) return;
  const require = createRequire(import.meta.url);
  const debug = createRequire(require.resolve('http-proxy-3'))('debug') as { enabled(name: string): boolean };
  if (debug.enabled('http-proxy-3') || debug.enabled('http-proxy-3:ws-incoming')) {
    throw new Error(
      'DEBUG makes http-proxy-3 log request paths, which may hold tokens; leave it out of DEBUG',
    );
  }
}
