import { expect, it } from 'vitest';
import { request, useAttackStage } from '../../harness/attack-stage.ts';

const stage = useAttackStage();

/** P4: this shop trims backslashes from both ends like slashes; URL parsers read them as slashes. */
it.each([
  ...[
    '/\\orders',
    '\\orders',
    '\\\\orders',
    '/orders\\',
    '/orders\\1',
    '/stores\\..\\orders',
    '/stores/..\\orders',
  ],
  ...[
    '/%5corders',
    '/orders%5C',
    '/orders%5c1',
    '/stores%5C..%5Corders',
    '/%255corders',
    '/\\shop.example/orders',
  ],
])('P4: 400 for %s', async (target) => {
  await stage.refuses(request(`GET ${target}`), 400, 'bad-request-target');
});

it('P4: a backslash in a query is forwarded', async () => {
  const { requestLine } = await stage.passes(request('GET /stores?q=a%5Cb\\c'));
  expect(requestLine).toBe('GET /stores?q=a%5Cb\\c HTTP/1.1');
});
