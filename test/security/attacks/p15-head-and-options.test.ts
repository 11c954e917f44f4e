import { expect, it } from 'vitest';
import { request, useAttackStage } from '../../harness/attack-stage.ts';

const stage = useAttackStage();

/** P15: if a row covered GET only, HEAD would tell what exists. */
it.each(['/orders', '/orders/1', '/carts/1', '/Carts/1/', '/carts/x/carts/1', '/%6frders'])(
  'P15: 401 without a body for HEAD %s',
  async (path) => {
    const response = await stage.refuses(request(`HEAD ${path}`), 401, '002');
    expect(response.body).toHaveLength(0);
    expect(response.field('etag')).toBe(undefined);
  },
);

/** OPTIONS is never authenticated, so its body must not hide another request. */
it.each(['Content-Length: 5', 'Transfer-Encoding: chunked'])(
  'P15: OPTIONS with %s is forwarded as one request',
  async (framing) => {
    const body = framing.startsWith('C') ? 'GET /' : '5\r\nGET /\r\n0\r\n\r\n';
    const { requestLine } = await stage.passes(request('OPTIONS /orders', [framing], body));
    expect(requestLine).toBe('OPTIONS /orders HTTP/1.1');
  },
);

it('P15: a method override is removed from OPTIONS', async () => {
  const { fields } = await stage.passes(request('OPTIONS /orders', ['X-HTTP-Method-Override: GET']));
  expect(fields('x-http-method-override')).toEqual([]);
});
