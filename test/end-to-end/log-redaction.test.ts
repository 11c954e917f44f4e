import { rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it, type TestContext } from 'vitest';
import { closingAtEnd } from '../harness/closing-at-end.ts';
import { eventually } from '../harness/eventually.ts';
import { listen } from '../harness/listen.ts';
import { exchangeRaw } from '../harness/raw-client.ts';
import { startRedisProcess } from '../harness/redis-server.ts';
import { type Shopward, startShopward } from '../harness/shopward.ts';
import { type HereOptions, refuseHere } from '../harness/shopward-here.ts';

/** Part of every secret below, so that half a secret is found too. */
const secret = 'c4nary';
const secretFile = path.join(tmpdir(), `shopward-secret-${process.pid}`);

beforeAll(() => writeFile(secretFile, `${secret}-file\n`));
afterAll(() => rm(secretFile));

const withTrace = (options: Partial<HereOptions>): HereOptions => ({
  upstream: 'http://127.0.0.1:9',
  ...options,
  config: { log: { level: 'trace' }, ...options.config },
});

async function start(context: TestContext, options: Partial<HereOptions>): Promise<Shopward> {
  const shopward = await startShopward(withTrace(options));
  closingAtEnd(context)({ close: () => shopward.kill() });
  return shopward;
}

async function everythingSaid(shopward: Shopward): Promise<string> {
  const ask = async (path: string) => {
    const response = await fetch(`${shopward.adminUrl}${path}`);
    return JSON.stringify([...response.headers]) + (await response.text());
  };
  const told = await Promise.all(['/metrics', '/readyz', '/api/state', '/api/rows'].map(ask));
  return shopward.output() + told.join('\n');
}

// Concurrent: a start waits two seconds for a Redis that refuses the password.
describe.concurrent('no secret of the configuration is printed', () => {
  it.for<[string, (port: number) => string]>([
    ['wrong password', (port: number) => `redis://:${secret}@127.0.0.1:${port}`],
    [
      'user and password with escapes',
      (port: number) => `redis://u${secret}:p%40%2F${secret}@127.0.0.1:${port}`,
    ],
    ['no server', () => `redis://:${secret}@127.0.0.1:9`],
  ])('address of Redis: %s', async ([, url], context) => {
    const settings = { requirepass: `other-${secret}` };
    const redis = closingAtEnd(context)(await startRedisProcess({ settings }));
    const shopward = await start(context, { config: { store: { url: url(redis.port) } } });
    await exchangeRaw(shopward.port, 'PATCH /carts/1 HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}');
    await eventually(
      'the line about the store',
      () => shopward.output().includes('"event":"store"') || undefined,
    );
    expect(await everythingSaid(shopward)).not.toContain(secret);
  });

  it('address of the key set, and answers of its server', async (context) => {
    const server = createServer((_incoming, response) =>
      response.writeHead(500, { 'X-Debug': secret }).end(`{"error":"${secret}"}`),
    );
    const { url } = closingAtEnd(context)(await listen(server));
    const shopward = await start(context, {
      config: { auth: { keys: { jwks: `${url}/jwks.json?token=${secret}` } } },
    });
    await exchangeRaw(
      shopward.port,
      `GET /carts HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${shopward.issueToken({ email: secret })}\r\n\r\n`,
    );
    expect(await everythingSaid(shopward)).not.toContain(secret);
  });

  it('the secret of HS256', async (context) => {
    const hs256 = await start(context, {
      config: { auth: { algorithms: ['HS256'], keys: { secret: `${secret}-${'x'.repeat(40)}` } } },
    });
    await exchangeRaw(hs256.port, 'GET /carts HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer a.b.c\r\n\r\n');
    expect(await everythingSaid(hs256)).not.toContain(secret);
  });

  it.for<[string, object]>([
    ['user in the upstream', { upstream: { url: `http://user:${secret}@127.0.0.1:9` } }],
    ['path in the upstream', { upstream: { url: `http://127.0.0.1:9/?key=${secret}` } }],
    ['a store URL of an unknown kind', { store: { url: `rediss//:${secret}@h` } }],
    ['a bad port in the store', { store: { url: `redis://:${secret}@127.0.0.1:x` } }],
    ['a short secret', { auth: { algorithms: ['HS256'], keys: { secret } } }],
    ['an admin token with spaces', { admin: { token: `${secret} x` } }],
    ['a secret where a number belongs', { workers: `\${file:${secretFile}}` }],
    ['a secret from a variable where a duration belongs', { store: { timeout: '${CANARY}' } }],
  ])('configuration that is refused: %s', async ([, config]) => {
    const { code, output } = await refuseHere(withTrace({ config, env: { CANARY: `${secret}-variable` } }));
    expect(code).toBe(78);
    expect(output).toMatch(/error: /);
    expect(output).not.toContain(secret);
  });
});
