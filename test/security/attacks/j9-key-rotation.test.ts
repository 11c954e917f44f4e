import { afterAll, beforeAll, expect, it } from 'vitest';
import { request } from '../../harness/attack-stage.ts';
import { exchangeRaw } from '../../harness/raw-client.ts';
import { answer, type RecordingUpstream, startRecordingUpstream } from '../../harness/recording-upstream.ts';
import { issueToken, type RunningShopward } from '../../harness/shopward.ts';
import { startShopwardHere } from '../../harness/shopward-here.ts';
import { type JwksServer, startJwksServer } from '../../unit/access/jwks-server.ts';
import { makeSigner } from '../../unit/access/signing.ts';

const old = makeSigner('RS256', 'old');
const fresh = makeSigner('RS256', 'fresh');
let jwks: JwksServer;
let upstream: RecordingUpstream;
let shopward: RunningShopward;

beforeAll(async () => {
  jwks = await startJwksServer(old);
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

/** J9: while keys change, no valid token is refused. */
it('J9: 200 for 250 tokens of the old and the new key during a rotation', async () => {
  const statuses: number[] = [];
  const ask = async (signer: typeof old, jti: string) => {
    const bytes = request('GET /orders', [`Authorization: Bearer ${issueToken(signer, { jti })}`]);
    statuses.push((await exchangeRaw(shopward.port, bytes)).status);
  };
  await Promise.all(Array.from({ length: 50 }, (_, i) => ask(old, `before-${i}`)));
  jwks.serve(old, fresh);
  await Promise.all(Array.from({ length: 200 }, (_, i) => ask(i % 2 ? old : fresh, `during-${i}`)));
  expect(statuses).toHaveLength(250);
  expect(new Set(statuses)).toEqual(new Set([200]));
  // Once at the start, once for the new `kid`.
  expect(jwks.hits).toBe(2);
});
