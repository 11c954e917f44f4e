import { expect, it } from 'vitest';
import { request, useAttackStage } from '../../harness/attack-stage.ts';

const stage = useAttackStage();

/** P12: rows match the path alone, which ends at the first raw `?`. oauth2-proxy CVE-2025-54576. */
it.each([
  '/orders?',
  '/orders?x',
  '/orders??',
  '/orders?/stores',
  '/orders/?x',
  '/orders/1?a=/stores/../x',
  '/orders?%',
])('P12: %s needs a token', async (target) => {
  await stage.demandsToken(request(`GET ${target}`));
});

it.each(['/stores%3f/../orders', '/stores%3F', '/orders%3fx', '/orders%253fx'])(
  'P12: 400 for %s',
  async (target) => {
    await stage.refuses(request(`GET ${target}`), 400, 'bad-request-target');
  },
);

it.each([
  '/stores?/orders',
  '/stores?',
  '/stores??',
  '/stores?/../orders',
  '/stores?q=\'"<>{}|^`&q=%2E%2e%2f;\\',
])('P12: the query of %s is forwarded byte for byte', async (target) => {
  expect((await stage.passes(request(`GET ${target}`))).requestLine).toBe(`GET ${target} HTTP/1.1`);
});
