import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import type { ReceivedLog, ReceivedRequest } from '../received.ts';
import { routes } from '../routes.ts';
import type { SigningKeys } from '../tokens/signing-keys.ts';
import { dispatch, type Shop } from './dispatch.ts';
import { effectiveMethod } from './effective-method.ts';
import { nextFault, sendFaulty } from './faults.ts';
import { readParameters } from './php-query.ts';
import { answerPreflight } from './preflight.ts';
import { readBody } from './request-body.ts';
import { readPath } from './resource-path.ts';
import { findRoute } from './router.ts';
import { refuse } from './shop-error.ts';
import { sendWritten, type Written, writeFailure, writeJson, writeResult } from './write-answer.ts';

export type Listener = { readonly server: Server; readonly stop: () => Promise<void> };

const keySetPaths = ['jwks.json', '.well-known/jwks.json'];

/** The shop's HTTP server: a request is noted the moment its head arrives, then delayed, perhaps failed, and answered. */
export function createListener(
  shop: Shop,
  keys: SigningKeys,
  log: ReceivedLog,
  keepAliveTimeout: number,
): Listener {
  const options = { maxHeaderSize: 64 * 1024, keepAliveTimeout };
  const server = createServer(options, (request, response) => {
    response.on('error', () => response.destroy());
    serve(request, response).catch(() => response.destroy());
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (error.code !== 'ECONNRESET') log.countMalformed();
    if (socket.writable) socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n');
  });
  return { server, stop };

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const target = request.url ?? '/';
    const { pairs } = readPath(target);
    if (request.method === 'GET' && keySetPaths.includes(pairs.map(joinPair).join('/'))) {
      sendWritten(response, writeJson(shop.settings.jwksStatus, keys.jwks()));
      return;
    }
    const received = log.arrive(request.method ?? '', target);
    const fault = nextFault(shop.settings);
    if (shop.settings.latencyMs > 0)
      await wait(shop.settings.latencyMs, undefined, { signal: shop.stopping });
    const answer = fault !== null && !fault.isAfterWork ? null : await work(shop, request, received, log);
    if (fault !== null) sendFaulty(response, shop.settings, fault, answer);
    else if (answer !== null) sendWritten(response, answer);
  }

  async function stop(): Promise<void> {
    const closed = new Promise((resolve) => server.close(resolve));
    server.closeAllConnections();
    await closed;
  }
}

/** Reads the whole request and does what it asks; never throws, since a refusal is an answer too. */
async function work(
  shop: Shop,
  request: IncomingMessage,
  received: ReceivedRequest,
  log: ReceivedLog,
): Promise<Written> {
  try {
    const body = await readBody(request, shop.settings.maxBodyBytes);
    const { pairs, query: rawQuery } = readPath(received.target);
    const query = readParameters(rawQuery);
    const override = request.headers['x-http-method-override'];
    const method = effectiveMethod(received.method, override?.toString(), body.form, query);
    const type = pairs.at(-1)?.type ?? '';
    if (method === 'OPTIONS' && pairs.length > 0) {
      log.countRoute(received, method, 'OPTIONS');
      const fields = answerPreflight(routes, type, request.headers);
      return { status: 200, fields, body: Buffer.alloc(0) };
    }
    const match = findRoute(routes, method, pairs);
    log.countRoute(received, method, match?.template ?? 'unmatched');
    if (match === null) refuse('notFound');
    const { answer, call } = await dispatch(
      shop,
      { method, pairs, query, fields: request.headers, body },
      match,
    );
    return writeResult(answer, call, `/${pairs.map(joinPair).join('/')}`);
  } catch (error) {
    return writeFailure(error, shop.settings);
  }
}

function joinPair({ type, id }: { readonly type: string; readonly id: string | null }): string {
  return id === null ? type : `${type}/${id}`;
}
