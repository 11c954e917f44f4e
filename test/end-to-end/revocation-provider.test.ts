import { createServer, type RequestListener } from 'node:http';
import { createRequire } from 'node:module';
import * as openid from 'openid-client';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { listen } from '../harness/listen.ts';
import type { RunningShopward } from '../harness/shopward.ts';
import { startShopwardHere } from '../harness/shopward-here.ts';

// This package has no types.
const { default: Provider } = createRequire(import.meta.url)('oidc-provider');

/** A real provider (oidc-provider) behind shopward, and a real client of it (openid-client) in front. */
let provider: InstanceType<typeof Provider>;
let shopward: RunningShopward;
let client: openid.Configuration;
const asked: string[] = [];
let handle: RequestListener = () => {};
const server = createServer((incoming, response) => {
  asked.push(`${incoming.method} ${incoming.url}`);
  handle(incoming, response);
});
let shop: Awaited<ReturnType<typeof listen>>;

beforeAll(async () => {
  shop = await listen(server);
  shopward = await startShopwardHere({
    upstream: shop.url,
    rows: ['GET /secret'],
    config: {
      refreshTokens: {
        replay: 'refuse',
        endpoints: [
          { kind: 'issue', method: 'POST', path: '/token', format: 'form' },
          { kind: 'exchange', method: 'POST', path: '/token', format: 'form' },
          { kind: 'revoke', method: 'POST', path: '/token/revocation', format: 'form' },
        ],
      },
    },
  });
  provider = new Provider(shopward.url, {
    clients: [
      {
        client_id: 'app',
        client_secret: 'a secret of the app',
        grant_types: ['authorization_code', 'refresh_token'],
        redirect_uris: ['https://app.example/back'],
      },
    ],
    features: { revocation: { enabled: true }, devInteractions: { enabled: false } },
    rotateRefreshToken: true,
    findAccount: (_: unknown, id: string) => ({ accountId: id, claims: () => ({ sub: id }) }),
  });
  provider.proxy = true;
  handle = provider.callback();
  client = await openid.discovery(new URL(shopward.url), 'app', 'a secret of the app', undefined, {
    execute: [openid.allowInsecureRequests],
  });
});
afterAll(async () => {
  await shopward?.stop();
  await shop.close();
});

/** Creates the refresh token of a login, without the browser part of the flow. */
async function logIn(): Promise<string> {
  const app = await provider.Client.find('app');
  if (app === undefined) throw new Error('no client');
  const grant = new provider.Grant({ accountId: 'DE--21', clientId: 'app' });
  grant.addOIDCScope('openid offline_access');
  const grantId = await grant.save();
  const token = new provider.RefreshToken({
    accountId: 'DE--21',
    client: app,
    grantId,
    scope: 'openid offline_access',
    gty: 'authorization_code',
    iiat: Math.floor(Date.now() / 1000),
    rotations: 0,
  });
  return token.save();
}

const refresh = async (token: string) => (await openid.refreshTokenGrant(client, token)).refresh_token ?? '';
const errorOf = (act: Promise<unknown>) =>
  act.then(
    () => 'none',
    (fault: { error?: string; status?: number }) => `${fault.status} ${fault.error}`,
  );

it('discovery names the endpoints at the public address', () => {
  const { token_endpoint, revocation_endpoint } = client.serverMetadata();
  expect([token_endpoint, revocation_endpoint]).toEqual([
    `${shopward.url}/token`,
    `${shopward.url}/token/revocation`,
  ]);
});

it('a used and a revoked token are refused without asking the provider', async () => {
  const first = await logIn();
  const second = await refresh(first);
  expect(second).toMatch(/./);
  expect(second).not.toBe(first);
  const before = asked.length;
  // The provider would end the whole grant on reuse. Shopward refuses first, so the latest token stays valid.
  expect(await errorOf(refresh(first))).toBe('400 invalid_grant');
  expect(asked.length).toBe(before);
  const third = await refresh(second);
  await openid.tokenRevocation(client, third, { token_type_hint: 'refresh_token' });
  expect(asked.at(-1)).toBe('POST /token/revocation');
  const ended = asked.length;
  expect(await errorOf(refresh(third))).toBe('400 invalid_grant');
  expect(asked.length).toBe(ended);
  // The provider has revoked it, too.
  expect(await provider.RefreshToken.find(third)).toBeUndefined();
  await openid.tokenRevocation(client, third);
});

it('a revocation with a wrong client secret does not end the token', async () => {
  const token = await logIn();
  const outsider = new openid.Configuration(client.serverMetadata(), 'app', 'a wrong secret');
  openid.allowInsecureRequests(outsider);
  expect(await errorOf(openid.tokenRevocation(outsider, token))).toBe('401 invalid_client');
  expect(await refresh(token)).toMatch(/./);
});
