import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

/** What the shop saw, judged by itself. */
export interface History {
  /** Writes through a tag that were applied. */
  applied: number;
  /** Writes without one (below a cart). */
  children: number;
  /** Applied writes that were made for another state than the one that they replaced. */
  lost: number;
}

/**
 * A shop that knows the truth: each cart is a version, each PATCH says for which version it was made, and the shop
 * applies it whatever that is. Now and then it refuses, fails, breaks the connection, or applies a write late, though
 * never later than `landsWithinMs` after it came.
 */
export function createHuntShop(history: History, landsWithinMs: number): Server {
  const versions = new Map<string, number>();
  const apply = (cart: string, basedOn: number | undefined): number => {
    const version = versions.get(cart) ?? 1;
    if (basedOn === undefined) history.children += 1;
    else {
      history.applied += 1;
      if (basedOn !== version) history.lost += 1;
    }
    versions.set(cart, version + 1);
    return version + 1;
  };
  return createServer(async (request, response) => {
    const [, , cart = '', child] = (request.url ?? '').split('/');
    const body = await readBody(request).catch(() => undefined);
    if (body === undefined) return;
    if (request.method === 'GET') {
      await sleep(Math.random() * 10);
      return send(response, 200, versions.get(cart) ?? 1);
    }
    const basedOn = child === undefined ? Number(JSON.parse(body).basedOn) : undefined;
    const fate = Math.random();
    if (fate < 0.03) return send(response, 422, 0);
    if (fate < 0.035) return send(response, 500, 0);
    if (fate < 0.04) {
      request.socket.destroy();
      await sleep(Math.random() * landsWithinMs);
      apply(cart, basedOn);
      return;
    }
    await sleep(Math.random() * (fate < 0.05 ? landsWithinMs : 20));
    const version = apply(cart, basedOn);
    if (fate > 0.995) request.socket.destroy();
    else send(response, fate > 0.99 ? 502 : 200, version);
  });
}

async function readBody(request: IncomingMessage): Promise<string> {
  let body = '';
  for await (const chunk of request) body += chunk;
  return body;
}

function send(response: ServerResponse, status: number, version: number): void {
  const body = JSON.stringify({ data: { type: 'carts', id: '1', attributes: { version } } });
  response.writeHead(status, { 'Content-Type': 'application/vnd.api+json' }).end(body);
}
