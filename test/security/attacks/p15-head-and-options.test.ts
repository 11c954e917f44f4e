import { expect, it } from 'vitest';
import { request, useAttackStage } from '../../harness/attack-stage.ts';

const stage = useAttackStage();

/** P15: a rule on GET alone lets HEAD tell what exists. */
it.each(['/orders', '/orders/1', '/carts/1', '/Carts/1/', '/carts/x/carts/1', '/%6frders'])(
  'P15: HEAD %s',
  async (path) => {
    const response = await stage.refuses(request(`HEAD ${path}`), 401, '002');
    expect(response.body).toHaveLength(0);
    expect(response.field('etag')).toBe(undefined);
  },
);

/** OPTIONS is never authenticated, so nothing may hide in it. */
it.each(['Content-Length: 5', 'Transfer-Encoding: chunked'])(
  'P15: OPTIONS with %s is one request',
  async (framing) => {
    const body = framing.startsWith('C') ? 'GET /' : '5\r\nGET /\r\n0\r\n\r\n';
    const { requestLine } = await stage.passes(request('OPTIONS /orders', [framing], body));
    expect(requestLine).toBe('OPTIONS /orders HTTP/1.1');
  },
);

it('P15: OPTIONS does not override a method', async () => {
  const { fields } = await stage.passes(request('OPTIONS /orders', ['X-HTTP-Method-Override: GET']));
  expect(fields('x-http-method-override')).toEqual([]);
});
