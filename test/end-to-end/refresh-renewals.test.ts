import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import Provider from 'oidc-provider';
import { afterEach, describe, expect, it } from 'vitest';
import { makeSigner } from '../access/signing.ts';
import { freePort } from '../harness/free-port.ts';
import { exchangeRaw } from '../harness/raw-client.ts';
import { answer, startRecordingUpstream } from '../harness/recording-upstream.ts';
import { startShopwardHere } from '../harness/shopward-here.ts';

/** Providers that do not rotate refresh tokens (RFC 6749 section 6): the token that was sent stays valid. */

const cleanUps: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

const path = '/token';
const sent = 'kH0n2Q7xVb9sYt4LmPz1RgkH0n2Q7xVb9sYt4LmPz';

async function startFront(port: number) {
  const endpoints = ['issue', 'exchange'].map((kind) => ({ kind, method: 'POST', path, format: 'form' }));
  const shopward = await startShopwardHere({
    upstream: `http://127.0.0.1:${port}`,
    rows: ['GET /secret'],
    config: { refreshTokens: { endpoints } },
  });
  cleanUps.push(() => shopward.stop());
  return async (token: string, more = '') => {
    const body = `grant_type=refresh_token&refresh_token=${encodeURIComponent(token)}${more}`;
    const head = [
      `POST ${path} HTTP/1.1`,
      ...[`Host: 127.0.0.1:${port}`, 'Connection: close', `Content-Length: ${body.length}`],
      'Content-Type: application/x-www-form-urlencoded',
    ];
    const response = await exchangeRaw(shopward.port, [...head, '', body].join('\r\n'));
    const text = String(response.body);
    return { status: response.status, text, json: text.startsWith('{') ? JSON.parse(text) : {} };
  };
}

/** A provider that gives each refresh the next of these answers, and the last one from then on. */
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

/** oidc-provider, with a refresh token as it gives one to a client after a sign-in. */
async function startProvider(rotateRefreshToken: boolean) {
  let handle: ReturnType<Provider['callback']> = (_, response) => response.end();
  const server = createServer((request, response) => handle(request, response)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanUps.push(async () => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const { privateKey, kid, alg } = makeSigner('RS256', 'one');
  const provider = new Provider(`http://127.0.0.1:${port}`, {
    jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), kid, alg, use: 'sig' }] },
    clients: [
      {
        ...{ client_id: 'shop', client_secret: 'secret', token_endpoint_auth_method: 'client_secret_post' },
        ...{ grant_types: ['refresh_token', 'authorization_code'], redirect_uris: ['https://shop.example/'] },
      },
    ],
    scopes: ['openid', 'offline_access'],
    rotateRefreshToken,
    features: { devInteractions: { enabled: false } },
    findAccount: (_: unknown, accountId: string) => ({ accountId, claims: () => ({ sub: accountId }) }),
  });
  handle = provider.callback();
  const client = await provider.Client.find('shop');
  if (client === undefined) throw new Error('the provider does not know its client');
  const scope = 'openid offline_access';
  const grant = new provider.Grant({ accountId: 'ann', clientId: 'shop' });
  grant.addOIDCScope(scope);
  const grantId = await grant.save();
  const token = new provider.RefreshToken({
    ...{ client, accountId: 'ann', grantId, scope, gty: 'authorization_code' },
  });
  return { refresh: await startFront(port), token: await token.save() };
}

const credentials = '&client_id=shop&client_secret=secret';

describe('a token that the provider does not replace is refreshed again and again', () => {
  it.each([
    ['repeats the token', { access_token: 'a', refresh_token: sent }],
    ['names no refresh token', { access_token: 'a', token_type: 'Bearer' }],
    ['names an empty one', { access_token: 'a', refresh_token: '' }],
    ['repeats the token alone', { refresh_token: sent }],
  ])('%s', async (_, text) => {
    const { refresh, count } = await startScripted(text);
    for (let i = 0; i < 4; i += 1) expect((await refresh(sent)).status).toBe(200);
    expect(count()).toBe(4);
  });

  it('oidc-provider without rotation', async () => {
    const { refresh, token } = await startProvider(false);
    for (let i = 0; i < 4; i += 1) {
      const { status, text, json } = await refresh(token, credentials);
      expect(status, text).toBe(200);
      expect(json.refresh_token).toBe(token);
    }
  });
});

describe('a token that was exchanged for another one is used', () => {
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
    expect([status, json.error, count()]).toEqual([400, 'invalid_grant', answers.length]);
  });

  it('oidc-provider with rotation', async () => {
    const { refresh, token } = await startProvider(true);
    const first = await refresh(token, credentials);
    expect(first.status, first.text).toBe(200);
    expect((await refresh(token, credentials)).json.error_description).toContain(
      'invalid, expired or revoked',
    );
    expect((await refresh(first.json.refresh_token, credentials)).status).toBe(200);
  });
});

it.each([
  ['a page', 'We are back soon.'],
  ['JSON without tokens', { status: 'maintenance' }],
  ['an access token that is no text', { access_token: null }],
])('the outcome of %s is not known: the token waits', async (_, text) => {
  const { refresh, count } = await startScripted(text);
  expect((await refresh(sent)).status).toBe(200);
  expect([(await refresh(sent)).status, count()]).toEqual([503, 1]);
});

it('a refresh that did not reach the shop leaves the token free at once', async () => {
  const port = await freePort();
  const refresh = await startFront(port);
  for (let i = 0; i < 3; i += 1) expect((await refresh(sent)).status).toBe(502);
  const shop = createServer((_, response) => response.end('{"access_token":"a"}')).listen(port, '127.0.0.1');
  await once(shop, 'listening');
  cleanUps.push(async () => {
    shop.closeAllConnections();
    shop.close();
  });
  expect((await refresh(sent)).status).toBe(200);
});
