import { createServer, type Server } from 'node:http';
import { text } from 'node:stream/consumers';
import { resetState } from './data/seeds.ts';
import type { Shop } from './http/resource.ts';
import { isRecord } from './http/rules.ts';
import { changeSettings } from './settings.ts';

type Control = (shop: Shop, body: Readonly<Record<string, unknown>>) => object | Promise<object>;

/** By request line; what has problems is answered with 422. */
const controls: Readonly<Record<string, Control>> = {
  'GET /settings': ({ settings }) => settings,
  'POST /settings': ({ settings }, change) => {
    const problems = changeSettings(settings, change);
    return problems.length > 0 ? { problems } : settings;
  },
  'GET /received': ({ received: { total, malformed, byRoute, requests } }) => {
    return { total, malformed, byRoute: Object.fromEntries(byRoute), requests };
  },
  'DELETE /received': ({ received }) => {
    received.clear();
    return { total: 0 };
  },
  /** Back to the seeds. */
  'POST /reset': ({ state }) => {
    resetState(state);
    return { reset: true };
  },
  'POST /rotate-keys': async ({ keys }, { keepOld }) => {
    await keys.rotate({ keepOld: keepOld !== false });
    return keys.jwks();
  },
};

/** The control address, on loopback and on a port of its own, so that no client of the shop can reach it. */
export function createControlServer(shop: Shop): Server {
  return createServer(async (request, response) => {
    const reply = (status: number, value: object) => {
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(`${JSON.stringify(value)}\n`);
    };
    try {
      const control = controls[`${request.method} ${request.url}`];
      if (control === undefined) return reply(404, { problems: ['unknown control request'] });
      const body: unknown = JSON.parse((await text(request)) || '{}');
      if (!isRecord(body)) throw new TypeError('expected an object');
      const outcome = await control(shop, body);
      reply('problems' in outcome ? 422 : 200, outcome);
    } catch (error) {
      reply(400, { problems: [error instanceof Error ? error.message : String(error)] });
    }
  });
}
