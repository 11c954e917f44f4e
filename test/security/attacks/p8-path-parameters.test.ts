import { describe, expect, it } from 'vitest';
import { request, useAttackStage } from '../../harness/attack-stage.ts';

const stage = useAttackStage();

/** P8: Tomcat, Spring and others drop `;params` of each segment. Shiro CVE-2020-13933, Envoy CVE-2026-73511. */
describe('P8: path parameters', () => {
  it.each([
    ...[
      '/orders;a=b',
      '/orders;',
      '/orders%3b',
      '/orders%3Ba=b',
      '/orders;a/1',
      '/orders/;a=b',
      '/orders/1;a=b',
    ],
    ...[
      '/;a=b/orders',
      '/;/orders',
      '/orders;jsessionid=1;x',
      '/carts;v=1/1;x/up-selling-products;y',
      '/ORDERS;.json',
    ],
  ])('%s needs a token', async (target) => {
    await stage.demandsToken(request(`GET ${target}`));
  });

  it.each([
    '/..;/orders',
    '/stores/..;a=b/orders',
    '/stores/..;/..;/orders',
    '/stores/.;/orders',
    '/stores;/../orders',
  ])('400 for %s', async (target) => {
    await stage.refuses(request(`GET ${target}`), 400, 'bad-request-target');
  });

  it('on an open route they are forwarded unchanged', async () => {
    const { requestLine } = await stage.passes(request('GET /stores;v=1/x;y?z;w'));
    expect(requestLine).toBe('GET /stores;v=1/x;y?z;w HTTP/1.1');
  });
});
