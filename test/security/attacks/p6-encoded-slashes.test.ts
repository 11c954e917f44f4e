import { expect, it } from 'vitest';
import { request, useAttackStage } from '../../harness/attack-stage.ts';

const stage = useAttackStage({ config: { request: { encodedSlash: ['/stores/{id}'] } } });

/** P6: one side reads `%2F` as a slash, the other does not. Traefik CVE-2025-66490, Envoy CVE-2021-29492. */
it.each([
  ...[
    '/catalog%2f..%2forders',
    '/orders%2f1',
    '/orders%2F1',
    '/x/..%2forders',
    '/%2forders',
    '/%2F%2Forders',
  ],
  ...['/orders%2f', '/carts/1%2fitems', '/orders%252f1', '/orders%25%32%66', '/catalog/%2e%2e%2forders'],
  // Where it is allowed, both readings are checked.
  ...[
    '/stores/..%2forders',
    '/stores/x%2f..%2forders',
    '/stores/x%2F%2e%2e',
    '/stores/x/y%2Fz',
    '/Stores/x%2Fy',
  ],
])('P6: 400 for %s', async (target) => {
  await stage.refuses(request(`GET ${target}`), 400, 'bad-request-target');
});

it.each(['/stores/x%2Forders%2f1', '/stores/%2Forders%2F1', '/stores/x%2Fcustomers%2Fy%2Faddresses'])(
  'P6: 401 for %s, which has a reading that needs a token',
  async (target) => {
    await stage.demandsToken(request(`GET ${target}`));
  },
);

it('P6: an allowed encoded slash is forwarded encoded', async () => {
  const { requestLine } = await stage.passes(request('GET /stores/a%2fb'));
  expect(requestLine).toBe('GET /stores/a%2Fb HTTP/1.1');
});
