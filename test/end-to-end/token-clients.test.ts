import { execFile } from 'node:child_process';
import { createRequire } from 'node:module';
import { promisify } from 'node:util';
import axios from 'axios';
import * as oauth from 'oauth4webapi';
import * as openid from 'openid-client';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type CarelessTokenShop, startCarelessTokenShop } from '../harness/careless-token-shop.ts';
import { findProgram } from '../harness/programs.ts';
import type { RunningShopward } from '../harness/shopward.ts';
import { startShopwardHere } from '../harness/shopward-here.ts';

// This package has no types.
const { ResourceOwnerPassword } = createRequire(import.meta.url)('simple-oauth2');
const run = promisify(execFile);

/** Requests as real clients of shops and providers send them: all pass, and each token passes once. */

let shop: CarelessTokenShop;
let shopward: RunningShopward;
beforeAll(async () => {
  shop = await startCarelessTokenShop();
  const config = { refreshTokens: { replay: 'refuse' } };
  shopward = await startShopwardHere({ upstream: shop.url, rows: ['GET /secret'], config });
});
afterAll(async () => {
  await shopward?.stop();
  await shop?.close();
});

let tokens = 0;
let token = '';
beforeEach(() => {
  tokens += 1;
  token = `1//0g${Buffer.from(`client token ${tokens}, long enough`).toString('base64')}`.replaceAll('=', '');
});
const at = (path: string) => `${shopward.url}${path}`;
const document = () => ({ data: { type: 'refresh-tokens', attributes: { refreshToken: token } } });
const password = 'p&=;+% "{[\u00e4\u{1f511}\u6f22]}';

/** Acts twice, and checks that only the first request reaches the shop. */
async function passesOnce(act: () => Promise<unknown>): Promise<void> {
  const before = shop.asked.length;
  await act();
  expect(shop.asked.length).toBe(before + 1);
  await act().catch(() => undefined);
  expect(shop.asked.length).toBe(before + 1);
}

async function passes(act: () => Promise<unknown>): Promise<void> {
  const before = shop.asked.length;
  await act();
  expect(shop.asked.length).toBe(before + 1);
}

describe('requests of libraries for OAuth pass', () => {
  const server = () => ({ issuer: shopward.url, token_endpoint: at('/token') });
  const insecure = { [oauth.allowInsecureRequests]: true };

  it.each([
    ['client_secret_basic', oauth.ClientSecretBasic('a secret of:ours')],
    ['client_secret_post', oauth.ClientSecretPost('a secret of:ours')],
    ['none', oauth.None()],
  ])('oauth4webapi: refresh, %s', async (method, authentication) => {
    const client = { client_id: 'frontend' };
    await passesOnce(() => oauth.refreshTokenGrantRequest(server(), client, authentication, token, insecure));
    expect(shop.asked.at(-1)?.headers.authorization?.startsWith('Basic ')).toBe(
      method === 'client_secret_basic' ? true : undefined,
    );
  });

  it('oauth4webapi: client credentials', async () => {
    const parameters = new URLSearchParams({ scope: 'a b', resource: 'https://shop.example/?x=1' });
    await passes(() =>
      oauth.clientCredentialsGrantRequest(
        server(),
        { client_id: 'x' },
        oauth.ClientSecretPost('y'),
        parameters,
        insecure,
      ),
    );
  });

  it('openid-client: refresh, and a password', async () => {
    const config = new openid.Configuration(server(), 'frontend', 'secret');
    openid.allowInsecureRequests(config);
    await passesOnce(() => openid.refreshTokenGrant(config, token, { scope: 'openid offline_access' }));
    await passes(() =>
      openid.genericGrantRequest(config, 'password', { username: 'sonia@shop.example', password }),
    );
  });

  it('simple-oauth2: a password, and a refresh with the issued token', async () => {
    const client = new ResourceOwnerPassword({
      client: { id: 'frontend', secret: 'secret' },
      auth: { tokenHost: shopward.url, tokenPath: '/token' },
    });
    await passes(() => client.getToken({ username: 'sonia@shop.example', password, scope: ['a', 'b'] }));
    const given = client.createToken({ access_token: 'a', refresh_token: token });
    await passesOnce(() => given.refresh());
    const asJson = new ResourceOwnerPassword({
      client: { id: 'frontend', secret: 'secret' },
      auth: { tokenHost: shopward.url, tokenPath: '/token' },
      options: { bodyFormat: 'json', authorizationMethod: 'body' },
    });
    token += 'json';
    await passesOnce(() => asJson.createToken({ access_token: 'a', refresh_token: token }).refresh());
  });
});

describe('requests of HTTP clients pass, except two', () => {
  it.each([
    'application/vnd.api+json',
    'application/json',
    'application/json; charset=utf-8',
    'application/vnd.api+json; charset=utf-8',
    'application/vnd.api+json; version=1.0',
  ])('fetch, %s', async (type) => {
    const headers = { 'Content-Type': type };
    await passesOnce(() =>
      fetch(at('/refresh-tokens'), { method: 'POST', headers, body: JSON.stringify(document()) }),
    );
  });

  it('fetch, a form', async () => {
    const fields = { grant_type: 'refresh_token', refresh_token: token, client_id: 'a' };
    await passesOnce(() => fetch(at('/token'), { method: 'POST', body: new URLSearchParams(fields) }));
  });

  it('415 for a multipart form', async () => {
    const before = shop.asked.length;
    const body = new FormData();
    body.set('refresh_token', token);
    const response = await fetch(at('/token'), { method: 'POST', body });
    expect([response.status, shop.asked.length]).toEqual([415, before]);
    expect(JSON.stringify(await response.json())).toContain('`refresh_token`');
  });

  it('axios: JSON:API and a form', async () => {
    await passesOnce(() => axios.post(at('/refresh-tokens'), document()));
    token += 'form';
    const fields = { grant_type: 'refresh_token', refresh_token: token };
    await passesOnce(() => axios.post(at('/token'), new URLSearchParams(fields)));
  });

  it('sign-in by JSON:API and by form, with a password of special characters', async () => {
    const attributes = { username: 'sonia@shop.example', password };
    await passes(() => axios.post(at('/access-tokens'), { data: { type: 'access-tokens', attributes } }));
    await passes(() =>
      axios.post(at('/token'), new URLSearchParams({ grant_type: 'password', ...attributes })),
    );
    await passes(() =>
      fetch(at('/token'), {
        method: 'POST',
        headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
        // A form without percent-encoding.
        body: 'grant_type=password&username=sonia@shop.example&password=100%;p\u00e4ssw\u00f6rd{"}',
      }),
    );
  });

  it('400 for a token in the query', async () => {
    const before = shop.asked.length;
    const target = at(`/token?grant_type=refresh_token&refresh_token=${encodeURIComponent(token)}`);
    const { status } = await fetch(target, { method: 'POST' });
    expect([status, shop.asked.length]).toEqual([400, before]);
  });

  it('a preflight, and a revocation with a Content-Type and no body', async () => {
    await passes(() =>
      fetch(at('/refresh-tokens'), { method: 'OPTIONS', headers: { Origin: 'https://a.example' } }),
    );
    await passes(() =>
      axios.delete(at('/refresh-tokens/mine'), { headers: { 'Content-Type': 'application/json' } }),
    );
  });
});

const php = findProgram('php');
it.skipIf(php === undefined).each([
  [
    'http_build_query',
    ['/token', 'application/x-www-form-urlencoded'],
    "http_build_query(['grant_type' => 'refresh_token', 'refresh_token' => $argv[2]])",
  ],
  [
    'json_encode, which escapes slashes',
    ['/refresh-tokens', 'application/json'],
    "json_encode(['data' => ['attributes' => ['refreshToken' => $argv[2]]]])",
  ],
])('a request of php passes: %s', async (_, [path = '', type], content) => {
  const options = `['method' => 'POST', 'header' => 'Content-Type: ${type}', 'content' => ${content}]`;
  const script =
    `$context = stream_context_create(['http' => ${options}]);` +
    'exit(file_get_contents($argv[1], false, $context) === false ? 1 : 0);';
  await passesOnce(() => run(php as string, ['-n', '-r', script, at(path), token]));
});
