import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import type { Received, ReceivedRequest } from '../received.ts';
import { routes } from '../routes.ts';
import type { SigningKeys } from '../tokens.ts';
import {
  nextFault,
  sendFaulty,
  sendWritten,
  type Written,
  writeFailure,
  writeResult,
  written,
} from './answer.ts';
import { answerPreflight, dispatch, findRoute } from './dispatch.ts';
import { refuse } from './refusals.ts';
import { joinPairs, readPath, readRequest } from './request.ts';
import type { Shop } from './resource.ts';

/** Idle time of a connection, as nginx in front of a real shop has it. */
const keepAliveTimeout = 75_000;

const keySetPaths = ['/jwks.json', '/.well-known/jwks.json'];

/** The shop's HTTP server: a request is noted the moment its head arrives, then delayed, perhaps failed, and answered. */
export function createListener(shop: Shop, keys: SigningKeys, received: Received): Server {
  const options = { maxHeaderSize: 64 * 1024, keepAliveTimeout };
  const server = createServer(options, (request, response) => {
    response.on('error', () => response.destroy());
    serve(request, response).catch(() => response.destroy());
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (error.code !== 'ECONNRESET') received.malformed += 1;
    if (socket.writable) socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n');
  });
  return server;

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { settings, stopping } = shop;
    const target = request.url ?? '/';
    if (request.method === 'GET' && keySetPaths.includes(joinPairs(readPath(target).pairs))) {
      const keySet = JSON.stringify(keys.jwks());
      sendWritten(response, written(settings.jwksStatus, { 'content-type': 'application/json' }, keySet));
      return;
    }
    const noted = received.arrive(request.method ?? '', target);
    const fault = nextFault(settings);
    if (settings.latencyMs > 0) await wait(settings.latencyMs, undefined, { signal: stopping });
    const answer = fault?.isAfterWork === false ? null : await work(shop, request, noted, received);
    if (fault !== null) sendFaulty(response, settings, fault, answer);
    else if (answer !== null) sendWritten(response, answer);
  }
}

/** Reads the whole request and does what it asks; never throws, since a refusal is an answer too. */
async function work(
  shop: Shop,
  incoming: IncomingMessage,
  noted: ReceivedRequest,
  received: Received,
): Promise<Written> {
  try {
    const request = await readRequest(incoming);
    const { method, pairs, fields } = request;
    const last = pairs.at(-1);
    if (method === 'OPTIONS' && last !== undefined) {
      received.countRoute(noted, method, 'OPTIONS');
      const answer = answerPreflight(routes, last.type, fields);
      return { status: 200, fields: { ...answer.fields }, body: Buffer.alloc(0) };
    }
    const match = findRoute(routes, method, pairs);
    received.countRoute(noted, method, match?.template ?? 'unmatched');
    if (match === null) refuse('notFound');
    const { answer, call } = await dispatch(shop, request, match);
    return writeResult(answer, call, joinPairs(pairs) || '/');
  } catch (error) {
    return writeFailure(error, shop.settings);
  }
}
