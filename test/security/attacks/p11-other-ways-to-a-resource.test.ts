import { describe, it } from 'vitest';
import { request, useAttackStage } from '../../harness/attack-stage.ts';

/** P11: this shop acts on the last pair of a path. It ignores the name of its script and, if configured, a version. */
describe('P11: under the defaults', () => {
  const stage = useAttackStage();

  it.each([
    ...['GET /carts/x/carts/1', 'PATCH /carts/x/carts/1', 'DELETE /carts/x/y/z/carts/1', 'GET /x/y/orders/1'],
    ...[
      'GET /x/y/orders',
      'DELETE /carts/A/items/B/items/C',
      'GET /carts/A/x/y/up-selling-products',
      'GET /1/orders/x',
    ],
    ...[
      'GET /index.php/orders',
      'GET /index.php/orders/1',
      'GET /index.php//orders',
      'GET /INDEX.PHP/orders',
    ],
    ...[
      'GET /index.php;x/orders',
      'GET /index.php/index.php/orders/1',
      'GET /index.phporders',
      'POST /index.php/returns',
    ],
  ])('%s needs a token', async (line) => {
    await stage.demandsToken(request(line, ['Content-Type: application/json']));
  });
});

describe('P11: a shop with versions in its paths', () => {
  const stage = useAttackStage({
    config: { request: { ignoredPrefixes: ['/index.php', '/1', '/1.0', '/v1', '/v1.0'] } },
  });

  it.each([
    '/1/orders',
    '/1.0/orders',
    '/v1/orders',
    '/v1.0/orders',
    '/V1/orders/1',
    '/index.php/v1/orders',
    '/orders',
  ])('%s needs a token', async (target) => {
    await stage.demandsToken(request(`GET ${target}`));
  });
});
