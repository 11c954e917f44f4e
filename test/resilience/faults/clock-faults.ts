import type { ServerResponse } from 'node:http';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { issueToken, startShopward } from '../../harness/shopward.ts';
import { ask } from './ask.ts';
import { checkScene, type Scene } from './scene.ts';
import { startOutageShop } from './shop.ts';

const minuteMs = 60_000;

/** The wall clock of shopward jumps while it runs. Redis's clock is set in redis-faults.ts. */
export async function runClockFaults(): Promise<Scene[]> {
  return Promise.all([60, -60].map(jump));
}

async function jump(minutes: number): Promise<Scene> {
  const shop = await startOutageShop();
  const preload = pathToFileURL(path.join(import.meta.dirname, 'shifted-clock.mjs')).href;
  const shopward = await startShopward({
    upstream: `http://127.0.0.1:${shop.port}`,
    config: { log: { level: 'warn' } },
    env: { NODE_OPTIONS: `--import=${preload}`, SHIFT_MS: String(minutes * minuteMs) },
  });
  const nowSeconds = Math.floor(Date.now() / 1000);
  const tokenAt = (offsetMinutes: number) => {
    const iat = nowSeconds + offsetMinutes * 60;
    return issueToken(shopward.signer, { iat, nbf: iat, exp: iat + 30 * 60 });
  };
  const [before, after] = [tokenAt(0), tokenAt(minutes)];
  const cart = `/carts/clock${minutes}`;
  const get = async (token: string) =>
    ask(shopward.port, { method: 'GET', path: cart, fields: { Authorization: `Bearer ${token}` } });
  const patch = async (token: string, tag: string | undefined) => {
    const fields = { Authorization: `Bearer ${token}`, 'If-Match': tag ?? '"none"' };
    return (await ask(shopward.port, { method: 'PATCH', path: cart, fields, body: {} })).words;
  };
  const { tag } = await get(before);
  // A write is in progress while the clock jumps. It was sent in time, so it succeeds.
  const arrival = Promise.withResolvers<ServerResponse>();
  shop.instead = arrival.resolve;
  const underWay = patch(before, tag);
  const response = await arrival.promise;
  shop.instead = undefined;
  shopward.signal('SIGUSR2');
  while ((await get(before)).words !== '401 001') await sleep(20);
  response.writeHead(200, { 'Content-Type': 'application/json' }).end('{}');
  const written = await underWay;
  const known = await get(after);
  const seen = {
    'PATCH under way': written,
    'token of before': (await get(before)).words,
    'token of after': known.words,
    'PATCH after': await patch(after, known.tag),
    'open GET': (await ask(shopward.port, { method: 'GET', path: '/stores/1' })).words,
  };
  const name = minutes > 0 ? `an hour forward` : `an hour back`;
  const scene = checkScene(name, seen, {
    'PATCH under way': '200 tagged',
    // Expired, or not issued yet.
    'token of before': '401 001',
    'token of after': '200 tagged',
    'PATCH after': '200 tagged',
    'open GET': '200',
  });
  await shopward.stop();
  shop.close();
  return scene;
}
