import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import type { ReceivedRequest } from '../received.ts';
import type { Written } from './answer.ts';
import { nextFault, sendFaulty, sendWritten, writeFailure, writeResult, written } from './answer.ts';
import { answerPreflight, dispatch, findRoute } from './dispatch.ts';
import { refuse } from './refusals.ts';
import { joinPairs, readPath, readRequest } from './request.ts';
import type { Shop } from './resource.ts';

/** Idle time of a connection, as nginx in front of a real shop has it. */
const keepAliveTimeout = 75_000;

const keySetPaths = ['/jwks.json', '/.well-known/jwks.json'];

/** The shop's HTTP server: records a request when its head arrives, delays it, perhaps fails it, and answers it. */
export function createListener(shop: Shop): Server {
  const options = { maxHeaderSize: 64 * 1024, keepAliveTimeout };
  const server = createServer(options, (request, response) => {
    response.on('error', () => response.destroy());
    serve(shop, request, response).catch(() => response.destroy());
  });
  return server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (error.code !== 'ECONNRESET') shop.received.malformed += 1;
    if (socket.writable) socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n');
  });
}

async function serve(shop: Shop, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { settings, stopping } = shop;
  const { method = '', url: target = '/' } = request;
  if (method === 'GET' && keySetPaths.includes(joinPairs(readPath(target).pairs))) {
    const fields = { 'content-type': 'application/json' };
    return sendWritten(response, written(200, fields, JSON.stringify(shop.keys.jwks())));
  }
  const noted = shop.received.arrive(method, target);
  const fault = nextFault(settings);
  if (settings.latencyMs > 0) await wait(settings.latencyMs, undefined, { signal: stopping });
  const answer = fault?.isAfterWork === false ? null : await work(shop, request, noted);
  if (fault !== null) sendFaulty(response, settings, fault, answer);
  else if (answer !== null) sendWritten(response, answer);
}

/** Reads the whole request and answers it. Never throws: a refusal is an answer. */
async function work(shop: Shop, incoming: IncomingMessage, noted: ReceivedRequest): Promise<Written> {
  const { received } = shop;
  try {
    const request = await readRequest(incoming);
    const { method, pairs, fields } = request;
    const last = pairs.at(-1);
    if (method === 'OPTIONS' && last !== undefined) {
      received.countRoute(noted, method, 'OPTIONS');
      return { status: 200, fields: answerPreflight(last.type, fields), body: Buffer.alloc(0) };
    }
    const match = findRoute(method, pairs);
    received.countRoute(noted, method, match?.template ?? 'unmatched');
    if (match === null) refuse('notFound');
    const { answer, call } = await dispatch(shop, request, match);
    return writeResult(answer, call, joinPairs(pairs) || '/');
  } catch (error) {
    return writeFailure(error);
  }
}
