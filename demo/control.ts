import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Received } from './received.ts';
import { changeSettings, type ShopSettings } from './settings.ts';
import { resetState, type ShopState } from './state.ts';
import type { SigningKeys } from './tokens.ts';

export type Controlled = {
  readonly settings: ShopSettings;
  readonly state: ShopState;
  readonly received: Received;
  readonly keys: SigningKeys;
};

/**
 * The control address, on loopback and on a port of its own, so that no client of the shop can reach it:
 * GET and POST /settings, GET and DELETE /received, POST /reset (back to the seeds), POST /rotate-keys.
 */
export function createControlServer(controlled: Controlled): Server {
  return createServer((request, response) => {
    answerControl(controlled, request, response).catch((error: unknown) => {
      reply(response, 400, { problems: [error instanceof Error ? error.message : String(error)] });
    });
  });
}

async function answerControl(
  { settings, state, received, keys }: Controlled,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  switch (`${request.method} ${request.url}`) {
    case 'GET /settings':
      return reply(response, 200, settings);
    case 'POST /settings': {
      const problems = changeSettings(settings, await readJson(request));
      return problems.length > 0 ? reply(response, 422, { problems }) : reply(response, 200, settings);
    }
    case 'GET /received': {
      const { total, malformed, byRoute, requests } = received;
      return reply(response, 200, { total, malformed, byRoute: Object.fromEntries(byRoute), requests });
    }
    case 'DELETE /received':
      received.clear();
      return reply(response, 200, { total: 0 });
    case 'POST /reset':
      resetState(state);
      return reply(response, 200, { reset: true });
    case 'POST /rotate-keys': {
      const change = await readJson(request);
      await keys.rotate({ keepOld: change.keepOld !== false });
      return reply(response, 200, keys.jwks());
    }
    default:
      return reply(response, 404, { problems: ['unknown control request'] });
  }
}

async function readJson(request: IncomingMessage): Promise<Record<string, unknown>> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  const text = Buffer.concat(chunks).toString('utf8');
  const value: unknown = text === '' ? {} : JSON.parse(text);
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new TypeError('expected an object');
  return { ...value };
}

function reply(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(`${JSON.stringify(value)}\n`);
}
