import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type JwksServer, startJwksServer } from '../../unit/access/jwks-server.ts';
import { makeSigner } from '../../unit/access/signing.ts';
import { expectRejection, request } from '../../harness/attack-stage.ts';
import { createKeptClient } from '../../harness/kept-client.ts';
import { exchangeRaw } from '../../harness/raw-client.ts';
import { answer, type RecordingUpstream, startRecordingUpstream } from '../../harness/recording-upstream.ts';
import { issueToken, type RunningShopward } from '../../harness/shopward.ts';
import { startShopwardHere } from '../../harness/shopward-here.ts';

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

/** J8, J9: a source of keys that is down is a fault, never a pass, and nobody's token is bad for it. In this order. */
describe('J8: the key server', () => {
  it('was never there: 503 with Retry-After, and not ready', async () => {
    const response = await ask(issueToken(signer));
    expectRejection(response, 503, 'keys-unavailable');
    expect(Number(response.field('retry-after'))).toBeGreaterThan(0);
    expect(response.field('www-authenticate')).toBe(undefined);
    expectRejection(await exchangeRaw(shopward.port, request('GET /orders')), 401, '002');
    expectRejection(await ask('x'), 401, '001');
    expect((await fetch(`${shopward.adminUrl}/readyz`)).status).toBe(503);
    expect(upstream.bytes()).toBe('');
    // What needs no token does not notice.
    expect((await exchangeRaw(shopward.port, request('GET /stores'))).status).toBe(200);
  });

  it('is asked by few, however many wait', async () => {
    const before = jwks.hits;
    const token = issueToken(signer);
    const statuses = await Promise.all(Array.from({ length: 200 }, async () => (await ask(token)).status));
    expect(new Set(statuses)).toEqual(new Set([503]));
    // It is asked anew after a while, however long all of them take.
    expect(jwks.hits - before).toBeLessThan(20);
  });

  it('comes up: tokens are good without a restart', async () => {
    jwks.serve(signer);
    const status = async () => (await ask(issueToken(signer))).status;
    await expect.poll(status, { interval: 100 }).toBe(200);
    expect((await fetch(`${shopward.adminUrl}/readyz`)).status).toBe(200);
  });

  it('goes down again: the keys are used on, and unknown ones are 503', async () => {
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

  it('neither tokens nor key ids are shown to anybody', () => {
    expect(shopward.output()).not.toMatch(/eyJ|unknown-\d/);
  });
});
