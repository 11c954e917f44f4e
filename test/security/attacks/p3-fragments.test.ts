import { it } from 'vitest';
import { request, useAttackStage } from '../../harness/attack-stage.ts';

const stage = useAttackStage();

/** P3: a matcher may miss `/orders#x`, while URL parsers drop `#x`. oauth2-proxy CVE-2026-41059, Envoy CVE-2021-32779. */
it.each([
  ...[
    '/orders#x',
    '/orders#',
    '/orders#/../stores',
    '/stores?#',
    '/stores?x#/orders',
    '/#/orders',
    '#',
    '/orders?#',
  ],
  ...['/orders%23x', '/orders%23', '/orders%2523x', '/stores%23/../orders', 'http://shop.example/orders#x'],
])('P3: %s', async (target) => {
  await stage.refuses(request(`GET ${target}`), 400, 'bad-request-target');
});
