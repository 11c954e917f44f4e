import { createServer, type RequestListener } from 'node:http';
import { createServer as createSocketServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import Provider from 'oidc-provider';
import { afterEach, describe, expect, it } from 'vitest';
import { begun } from '../harness/begun.ts';
import { eventually } from '../harness/eventually.ts';
import { freePort } from '../harness/free-port.ts';
import { listen } from '../harness/listen.ts';
import { exchangeRaw, openRawConnection } from '../harness/raw-client.ts';
import { answer, startRecordingUpstream } from '../harness/recording-upstream.ts';
import { startSentinel } from '../harness/redis-processes.ts';
import { startShopwardHere } from '../harness/shopward-here.ts';
import { makeSigner } from '../unit/access/signing.ts';

/** Honest clients of providers that keep, rotate or check tokens for reuse; two tabs; cut connections. */

const cleanUps: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

const path = '/token';
const sent = 'kH0n2Q7xVb9sYt4LmPz1RgkH0n2Q7xVb9sYt4LmPz';

async function startFront(port: number, more: object = {}, settings: object = {}) {
  const endpoints = ['issue', 'exchange'].map((kind) => ({ kind, method: 'POST', path, format: 'form' }));
  const shopward = await startShopwardHere({
    upstream: `http://127.0.0.1:${port}`,
    rows: ['GET /secret'],
    config: { refreshTokens: { endpoints, ...more }, ...settings },
  });
  cleanUps.push(() => shopward.stop());
  const bytesOf = (token: string, more = '') => {
    const body = `grant_type=refresh_token&refresh_token=${encodeURIComponent(token)}${more}`;
    const head = [
      `POST ${path} HTTP/1.1`,
      ...[`Host: 127.0.0.1:${port}`, 'Connection: close', `Content-Length: ${body.length}`],
      'Content-Type: application/x-www-form-urlencoded',
    ];
    return [...head, '', body].join('\r\n');
  };
  const refresh = async (token: string, more = '') => {
    const response = await exchangeRaw(shopward.port, bytesOf(token, more));
    const text = String(response.body);
    const json = text.startsWith('{') ? JSON.parse(text) : {};
    return { status: response.status, text, json, retryAfter: Number(response.field('retry-after')) };
  };
  return Object.assign(refresh, { shopward, bytesOf });
}

async function serveShop(listener: RequestListener, port = 0): Promise<number> {
  const shop = await listen(createServer(listener), { port });
  cleanUps.push(shop.close);
  return shop.port;
}

/** A provider that gives each refresh the next of these answers; the last one repeats. */
async function startScripted(...answers: readonly (object | string)[]) {
  let count = 0;
  const upstream = await startRecordingUpstream(
    () => {
      const next = answers[Math.min(count, answers.length - 1)] ?? '';
      count += 1;
      const [text, type] =
        typeof next === 'string' ? [next, 'text/html'] : [JSON.stringify(next), 'application/json'];
      return answer(text, `Content-Type: ${type}\r\n`);
    },
    { answersWhole: true },
  );
  cleanUps.push(() => upstream.close());
  return { refresh: await startFront(upstream.port), count: () => count };
}

/**
 * oidc-provider, which keeps the refresh tokens of the client `keeps` and rotates those of `rotates`; it ends the grant if a
 * rotated token is used again. `until`: it answers after that. `tokenOf`: the token of a new sign-in.
 */
async function startProvider({ until, ...settings }: { until?: Promise<void>; replay?: string } = {}) {
  let handle: ReturnType<Provider['callback']> = (_, response) => response.end();
  let asked = 0;
  const port = await serveShop(async (request, response) => {
    asked += 1;
    await until;
    handle(request, response);
  });
  const { privateKey, kid, alg } = makeSigner('RS256', 'one');
  const provider = new Provider(`http://127.0.0.1:${port}`, {
    jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), kid, alg, use: 'sig' }] },
    clients: ['keeps', 'rotates'].map((id) => ({
      ...{ client_id: id, client_secret: 'secret', token_endpoint_auth_method: 'client_secret_post' },
      ...{ grant_types: ['refresh_token', 'authorization_code'], redirect_uris: ['https://shop.example/'] },
    })),
    scopes: ['openid', 'offline_access'],
    rotateRefreshToken: ({ oidc }: { oidc: { client: { clientId: string } } }) =>
      oidc.client.clientId === 'rotates',
    features: { devInteractions: { enabled: false } },
    findAccount: (_: unknown, accountId: string) => ({ accountId, claims: () => ({ sub: accountId }) }),
  });
  handle = provider.callback();
  const send = await startFront(port, settings);
  const tokenOf = async (id: string) => {
    const client = await provider.Client.find(id);
    if (client === undefined) throw new Error('the provider does not know its client');
    const scope = 'openid offline_access';
    const grant = new provider.Grant({ accountId: 'ann', clientId: id });
    grant.addOIDCScope(scope);
    const grantId = await grant.save();
    const token = { client, accountId: 'ann', grantId, scope, gty: 'authorization_code' };
    return new provider.RefreshToken(token).save();
  };
  const refreshAs = (id: string) => (token: string) => send(token, `&client_id=${id}&client_secret=secret`);
  return { tokenOf, refreshAs, asked: () => asked };
}

describe('a token that the provider does not replace can be refreshed again', () => {
  it.each([
    ['repeats the token', { access_token: 'a', refresh_token: sent }],
    ['names no refresh token', { access_token: 'a', token_type: 'Bearer' }],
    ['names an empty one', { access_token: 'a', refresh_token: '' }],
    ['repeats the token, without an access token', { refresh_token: sent }],
  ])('%s', async (_, text) => {
    const { refresh, count } = await startScripted(text);
    for (let i = 0; i < 4; i += 1) expect((await refresh(sent)).status).toBe(200);
    expect(count()).toBe(4);
  });
});

describe('a token counts as used after the provider has replaced it', () => {
  const next = `next${sent}`;

  it.each([
    ['at once', [{ access_token: 'a', refresh_token: next }]],
    ['after it was repeated', [{ access_token: 'a', refresh_token: sent }, { refresh_token: next }]],
    ['after a renewal', [{ access_token: 'a' }, { access_token: 'a', refresh_token: next }]],
    ['beside the old one', [{ refresh_token: [sent, next] }]],
    ['beside the old one, in another object', [{ refresh_token: sent, a: { refresh_token: next } }]],
  ])('%s', async (_, answers) => {
    const { refresh, count } = await startScripted(...answers);
    for (const __ of answers) expect((await refresh(sent)).status).toBe(200);
    const { status, json } = await refresh(sent);
    // The shop is asked, because it may detect reuse. This one does not, and its answer is withheld.
    expect([status, json.error, count()]).toEqual([400, 'invalid_grant', answers.length + 1]);
  });
});

describe('oidc-provider: the answer to each refresh, by client and setting', () => {
  it.each<[string, string, string | undefined, string]>([
    ['keeps its tokens', 'keeps', undefined, 'first 200, first 200, first 200, first 200'],
    ['rotates them', 'rotates', undefined, 'latest 200, latest 200, latest 200, latest 200'],
    // The provider sees the reuse and ends the grant, which ends the stolen family.
    ['sees reuse, by default', 'rotates', undefined, 'latest 200, latest 200, first 400, latest 400'],
    ['does not see reuse, `refuse`', 'rotates', 'refuse', 'latest 200, latest 200, first 400, latest 200'],
    ['sees no reuse, `end-family`', 'rotates', 'end-family', 'latest 200, first 400, latest 400'],
    ['keeps them, `end-family`', 'keeps', 'end-family', 'first 200, first 200, latest 200'],
  ])('%s: %s, replay %s', async (_, id, replay, rows) => {
    const { tokenOf, refreshAs } = await startProvider(replay === undefined ? {} : { replay });
    const [refresh, first] = [refreshAs(id), await tokenOf(id)];
    let latest = first;
    const seen: string[] = [];
    for (const which of rows.match(/first|latest/g) ?? []) {
      const { status, json } = await refresh(which === 'first' ? first : latest);
      seen.push(`${which} ${status}`);
      if (status === 200) latest = json.refresh_token;
    }
    expect(seen.join(', ')).toBe(rows);
    expect(latest === first).toBe(id === 'keeps');
  });

  it('a second tab that obeys Retry-After does not end the login', async () => {
    const { promise: until, resolve: release } = Promise.withResolvers<void>();
    const { tokenOf, refreshAs, asked } = await startProvider({ until });
    const [refresh, token] = [refreshAs('rotates'), await tokenOf('rotates')];
    const first = begun(refresh(token));
    await eventually('the first refresh at the provider', () => asked() > 0 || undefined);
    const told = await refresh(token);
    expect([told.status, told.retryAfter]).toEqual([503, 1]);
    release();
    const { json } = await first;
    await sleep(told.retryAfter * 1000);
    expect((await refresh(token)).json.error).toBe('invalid_grant');
    expect((await refresh(json.refresh_token)).status).toBe(200);
  });
});

it.each([
  ['2s', 5000],
  ['1s', 2500],
])(
  'leeway %s, a shop of %i ms, `end-family`: a tab that obeys Retry-After gets the same pair',
  async (leeway, shopMs) => {
    let count = 0;
    const port = await serveShop(async (_, response) => {
      count += 1;
      const pair = JSON.stringify({ access_token: 'a', refresh_token: `${count}${sent}` });
      await sleep(shopMs);
      response.setHeader('Content-Type', 'application/json').end(pair);
    });
    const refresh = await startFront(port, { leeway, replay: 'end-family' });
    const winner = refresh(sent);
    await sleep(100);
    const waits: number[] = [];
    let second = await refresh(sent);
    for (; second.status === 503; second = await refresh(sent)) {
      waits.push(second.retryAfter);
      await sleep(second.retryAfter * 1000);
    }
    expect(Math.max(...waits)).toBeLessThanOrEqual(Number(leeway[0]));
    const { json } = await winner;
    expect([second.status, second.json]).toEqual([200, json]);
    expect((await refresh(json.refresh_token)).status).toBe(200);
  },
);

it.each([
  ['a page', 'We are back soon.'],
  ['JSON without tokens', { status: 'maintenance' }],
  ['an access token that is no text', { access_token: null }],
])(
  'after %s the outcome is unknown: the next refresh gets 503 and does not reach the shop',
  async (_, text) => {
    const { refresh, count } = await startScripted(text);
    expect((await refresh(sent)).status).toBe(200);
    expect([(await refresh(sent)).status, count()]).toEqual([503, 1]);
  },
);

describe('a cut connection', () => {
  const pair = '{"access_token":"a"}';

  it('leaves the token valid if nothing was sent', async () => {
    const port = await freePort();
    const refresh = await startFront(port);
    for (let i = 0; i < 3; i += 1) expect((await refresh(sent)).status).toBe(502);
    await serveShop((_, response) => response.end(pair), port);
    expect((await refresh(sent)).status).toBe(200);
  });

  it('leaves the token valid if its client leaves while the request waits for a connection', async () => {
    const busy = Promise.withResolvers<void>();
    const asked: string[] = [];
    const port = await serveShop(async ({ method = '' }, response) => {
      asked.push(method);
      if (method === 'GET') await busy.promise;
      response
        .setHeader('Content-Type', 'application/json')
        .end('{"access_token":"a","refresh_token":"next"}');
    });
    const settings = { upstream: { connections: 1, connectTimeout: '2m' }, limits: { clientShare: 100 } };
    const refresh = await startFront(port, {}, settings);
    const { shopward } = refresh;
    const queued = async () =>
      /^shopward_upstream_queue (.*)$/m.exec(await (await fetch(`${shopward.adminUrl}/metrics`)).text())?.[1];
    const first = exchangeRaw(shopward.port, `GET /stores HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`);
    await expect.poll(() => asked).toEqual(['GET']);
    const client = await openRawConnection(shopward.port);
    await client.write(refresh.bytesOf(sent));
    await expect.poll(queued).toBe('1');
    client.close();
    await expect.poll(queued).toBe('0');
    busy.resolve();
    expect((await first).status).toBe(200);
    expect((await refresh(sent)).status).toBe(200);
    expect(asked).toEqual(['GET', 'POST']);
  });

  it('blocks the token after the request was sent, but only while the shop may still work on it', async () => {
    let count = 0;
    const shop = createSocketServer((socket) => {
      count += 1;
      const isFirst = count === 1;
      const head = `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${pair.length}\r\n\r\n`;
      socket
        .on('error', () => {})
        .once('data', () => (isFirst ? socket.resetAndDestroy() : socket.end(head + pair)));
    });
    const { port, close } = await listen(shop);
    cleanUps.push(close);
    const refresh = await startFront(port, { shopTimeout: '2s' });
    expect((await refresh(sent)).status).toBe(502);
    const told = await refresh(sent);
    expect([told.status, told.json.error, count]).toEqual([503, 'temporarily_unavailable', 1]);
    expect(told.retryAfter).toBeLessThanOrEqual(2);
    await sleep(told.retryAfter * 1000);
    expect((await refresh(sent)).status).toBe(200);
  });
});

it('a failover that loses the used mark does not exchange the token again', async () => {
  const sentinel = await startSentinel({ replicas: 1 });
  cleanUps.push(() => sentinel.close());
  const answered = Promise.withResolvers<void>();
  let count = 0;
  const port = await serveShop(async (_, response) => {
    count += 1;
    await answered.promise;
    response
      .setHeader('Content-Type', 'application/json')
      .end(`{"access_token":"a","refresh_token":"${count}${sent}"}`);
  });
  const store = { url: sentinel.url, replicas: 1, timeout: '2s' };
  const refresh = await startFront(
    port,
    { replay: 'refuse' },
    { store, upstream: { responseTimeout: '4s' } },
  );
  const primary = await sentinel.primary();
  const replica = sentinel.servers.find((server) => server.port !== primary.port);
  const direct = new Redis(replica?.port ?? 0);
  cleanUps.push(async () => direct.disconnect());
  const first = refresh(sent);
  await expect.poll(() => count).toBe(1);
  // Detaches the replica between claim and mark, so that it misses the mark.
  await direct.replicaof('127.0.0.1', 1);
  answered.resolve();
  expect((await first).status).toBe(200);
  await primary.kill();
  await sentinel.awaitNewPrimary(primary);
  // It restarts as the replica that must confirm new claims.
  await primary.restart();
  const seen = new Set<number>();
  const decided = () => [...seen].filter((status) => status !== 503);
  // Longer than the claim on the replica lasts (4 s and a margin of 5 s), and until the store confirms claims again.
  const endMs = performance.now() + 11_000;
  for (; performance.now() < endMs || decided().length === 0; await sleep(250))
    seen.add((await refresh(sent)).status);
  expect([decided(), count]).toEqual([[400], 1]);
});
