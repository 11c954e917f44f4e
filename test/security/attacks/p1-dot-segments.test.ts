import { it } from 'vitest';
import { request, useAttackStage } from '../../harness/attack-stage.ts';

const stage = useAttackStage();

/** P1: an upstream that resolves dot segments sees another path than the matcher. Envoy CVE-2019-9901, Traefik CVE-2025-32431. */
it.each([
  ...['/catalog/../orders', '/catalog/%2e%2e/orders', '/catalog/.%2E/orders', '/catalog/%2E./orders'],
  ...['/orders/.', '/./orders', '/%2e/orders', '/orders/..', '/orders/%2e%2e/carts', '/..', '/.', '/%2e%2e'],
  ...['/catalog/%252e%252e/orders', '/catalog/%252E./orders', '/catalog/.%252e/orders'],
  ...[
    '/catalog/..;/orders',
    '/catalog/..;x=1/orders',
    '/catalog/%2e%2e%3b/orders',
    '/..;/orders',
    '/.;/orders',
  ],
  ...['/catalog/..%20/orders', '/catalog/%20../orders', '/catalog/.%20./orders', '/catalog/..%20;x/orders'],
  ...['//../orders', '//x/../orders', '/carts/../../orders', '/catalog/../orders?x=1'],
  ...['/catalog;/../orders', '/..%3b/orders', '/a/%2e%20', '/a/..%20.%20/orders'],
])('P1: 400 for %s', async (target) => {
  await stage.refuses(request(`GET ${target}`), 400, 'bad-request-target');
});

it.each(['/...', '/catalog.../x', '/catalog/..a/x', '/catalog/a../x'])(
  'P1: %s passes: dots within a name',
  async (target) => {
    await stage.passes(request(`GET ${target}`));
  },
);
