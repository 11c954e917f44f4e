import { describe, expect, it } from 'vitest';
import { request, useAttackStage } from '../../harness/attack-stage.ts';
import { exchangeRaw } from '../../harness/raw-client.ts';

const stage = useAttackStage({
  config: { auth: { clockTolerance: '0s' } },
  rows: ['GET /orders', { match: 'GET /reports/**', scopes: ['analyst'] }],
});
const withToken = (token: string, line = 'GET /orders') => request(line, [`Authorization: Bearer ${token}`]);

/** J7: the cache must compare the whole token, and must not keep it beyond its expiry. */
describe('J7: the cache of verified tokens', () => {
  it('401 for a cached token with a changed signature', async () => {
    const token = stage.shopward.issueToken();
    await stage.passes(withToken(token));
    const [header, payload, signature = ''] = token.split('.');
    for (let at = 0; at < signature.length; at += 37) {
      const other = signature[at] === 'A' ? 'B' : 'A';
      const changed = `${header}.${payload}.${signature.slice(0, at)}${other}${signature.slice(at + 1)}`;
      await stage.refuses(withToken(changed), 401, '001');
    }
    await stage.passes(withToken(token));
  });

  it('the scopes of each row are checked for a cached token', async () => {
    const token = stage.shopward.issueToken();
    await stage.passes(withToken(token));
    await stage.refuses(withToken(token, 'GET /reports/1'), 403, 'insufficient-scope');
    const analyst = stage.shopward.issueToken({ scopes: ['analyst'] });
    await stage.passes(withToken(analyst, 'GET /reports/1'));
    await stage.refuses(withToken(token, 'GET /reports/1'), 403, 'insufficient-scope');
  });

  it('401 for a cached token after it has expired', async () => {
    const now = Math.floor(Date.now() / 1000);
    const token = stage.shopward.issueToken({ exp: now + 3 });
    await stage.passes(withToken(token));
    const status = async () => (await exchangeRaw(stage.port, withToken(token))).status;
    await expect.poll(status, { interval: 100 }).toBe(401);
    expect(Date.now()).toBeGreaterThanOrEqual((now + 3) * 1000);
  });

  it('a cached token is forwarded as Bearer for each spelling of the scheme', async () => {
    const token = stage.shopward.issueToken();
    for (const scheme of ['Bearer', 'bearer ', 'BEARER  ']) {
      const { fields } = await stage.passes(request('GET /orders', [`Authorization: ${scheme} ${token}`]));
      expect(fields('authorization')).toEqual([`Bearer ${token}`]);
    }
  });
});
