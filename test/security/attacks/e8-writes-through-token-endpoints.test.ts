import { describe, it } from 'vitest';
import { request, useAttackStage } from '../../harness/attack-stage.ts';

/**
 * E8: the shop acts on the last pair of a path, so a path that begins or ends like a token endpoint may still change a
 * cart. If one filter alone handled it, the other's check (If-Match, or the refresh token) would be skipped.
 */
describe('E8: a path that two filters match', () => {
  const stage = useAttackStage({ rows: ['GET /orders'] });
  const body = '{"data":{"attributes":{"sku":"T"}}}';
  const json = ['Content-Type: application/json', `Content-Length: ${body.length}`];
  const form = ['Content-Type: application/x-www-form-urlencoded', 'Content-Length: 13'];

  it.each([
    'POST /access-tokens/1/carts/7/items',
    'POST /access-tokens/1/carts/7',
    'POST /access-tokens/1/carts',
    'POST /refresh-tokens/1/carts/7/items',
    'POST /Refresh-Tokens;x//carts/7/items',
    'POST /index.php/token/1/carts/7/items',
    'POST /carts/7/token',
    'POST /carts/7/refresh-tokens',
    'DELETE /carts/7/refresh-tokens/T',
    'DELETE /carts/7/x/1/refresh-tokens/T',
  ])('400 for %s', async (line) => {
    await stage.refuses(request(line, json, body), 400, 'lenient-spelling');
  });

  it('400 for a form that asks for PATCH', async () => {
    await stage.refuses(
      request('POST /access-tokens/1/carts/7', form, '_method=PATCH'),
      400,
      'lenient-spelling',
    );
    await stage.refuses(
      request('POST /carts/7/refresh-tokens/T', form, '_method=PATCH'),
      400,
      'lenient-spelling',
    );
  });

  it.each(['POST /access-tokens', 'POST /access-tokens/1', 'POST /a/1/token'])('%s passes', async (line) => {
    await stage.passes(request(line, json, body));
  });

  it('a GET passes', async () => {
    await stage.passes(request('GET /carts/7/refresh-tokens'));
    await stage.passes(request('GET /refresh-tokens/1/carts/7'));
  });
});
