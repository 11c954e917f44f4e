import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { expectRejection, request } from '../../harness/attack-stage.ts';
import { createKeptClient } from '../../harness/kept-client.ts';
import { exchangeRaw } from '../../harness/raw-client.ts';
import { answer, type RecordingUpstream, startRecordingUpstream } from '../../harness/recording-upstream.ts';
import { issueToken, type RunningShopward } from '../../harness/shopward.ts';
import { startShopwardHere } from '../../harness/shopward-here.ts';
import { type JwksServer, startJwksServer } from '../../unit/access/jwks-server.ts';
import { makeSigner } from '../../unit/access/signing.ts';

const signer = makeSigner('RS256', 'first');
const next = makeSigner('RS256', 'second');
let jwks: JwksServer;
let upstream: RecordingUpstream;
let shopward: RunningShopward;

beforeAll(async () => {
  jwks = await startJwksServer(signer);
  jwks.goDown();
  upstream = await startRecordingUpstream(() => answer());
  shopward = await startShopwardHere({
    upstream: `http://127.0.0.1:${upstream.port}`,
    config: { auth: { keys: { jwks: jwks.url } } },
  });
});
afterAll(async () => {
  await shopward?.stop();
  await upstream?.close();
  await jwks?.close();
});

const ask = (token: string) =>
  exchangeRaw(shopward.port, request('GET /orders', [`Authorization: Bearer ${token}`]));

/** J8, J9: while the key server is down, a token is answered 503, neither accepted nor called invalid. The tests need this order. */
describe('J8: the key server', () => {
  it('has been down since the start: 503 with Retry-After for a token, and not ready', async () => {
    const response = await ask(issueToken(signer));
    expectRejection(response, 503, 'keys-unavailable');
    expect(Number(response.field('retry-after'))).toBeGreaterThan(0);
    expect(response.field('www-authenticate')).toBe(undefined);
    expectRejection(await exchangeRaw(shopward.port, request('GET /orders')), 401, '002');
    expectRejection(await ask('x'), 401, '001');
    expect((await fetch(`${shopward.adminUrl}/readyz`)).status).toBe(503);
    expect(upstream.bytes()).toBe('');
    // A route without a token is not affected.
    expect((await exchangeRaw(shopward.port, request('GET /stores'))).status).toBe(200);
  });

  it('gets fewer than 20 requests for 200 tokens at once', async () => {
    const before = jwks.hits;
    const token = issueToken(signer);
    const statuses = await Promise.all(Array.from({ length: 200 }, async () => (await ask(token)).status));
    expect(new Set(statuses)).toEqual(new Set([503]));
    // It is asked again after a while, so a slow machine sees more than one request.
    expect(jwks.hits - before).toBeLessThan(20);
  });

  it('comes up: 200 for a token without a restart', async () => {
    jwks.serve(signer);
    const status = async () => (await ask(issueToken(signer))).status;
    await expect.poll(status, { interval: 100 }).toBe(200);
    expect((await fetch(`${shopward.adminUrl}/readyz`)).status).toBe(200);
  });

  it('goes down again: 200 for a known key, 503 for unknown ones', async () => {
    jwks.goDown();
    const before = jwks.hits;
    const client = createKeptClient(shopward.port);
    for (let i = 0; i < 300; i += 1) {
      const unknown = issueToken(next, { jti: `${i}` }, { kid: `unknown-${i}` });
      const { status } = await client.exchange(request('GET /orders', [`Authorization: Bearer ${unknown}`]));
      expect(status).toBe(503);
    }
    client.close();
    expect(jwks.hits - before).toBeLessThan(20);
    expect((await ask(issueToken(signer))).status).toBe(200);
    expect(upstream.bytes()).not.toContain('unknown');
  });

  it('the log contains no token and no unknown key id', () => {
    expect(shopward.output()).not.toMatch(/eyJ|unknown-\d/);
  });
});
