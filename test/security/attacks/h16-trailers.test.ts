import { expect, it } from 'vitest';
import { request, useAttackStage } from '../../harness/attack-stage.ts';

const stage = useAttackStage({
  script: ({ head }) =>
    head.startsWith('GET /trailers')
      ? 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: ETag, Set-Cookie\r\n\r\n2\r\nok\r\n0\r\nETag: "t"\r\nSet-Cookie: a=b\r\n\r\n'
      : undefined,
});

/** H16: a trailer must not count as a field, neither in shopward nor in the shop. */
it('H16: 401 for a token in a trailer, and trailers of a request are removed', async () => {
  const body = `0\r\nAuthorization: Bearer ${stage.shopward.issueToken()}\r\nHost: evil\r\n\r\n`;
  const framing = ['Content-Type: application/json', 'Transfer-Encoding: chunked', 'Trailer: Authorization'];
  await stage.demandsToken(request('POST /returns', framing, body));
  const { head } = await stage.passes(request('POST /stores', framing, body));
  expect(head).not.toMatch(/trailer|authorization|evil/i);
  expect(stage.upstream.bytes()).not.toMatch(/authorization|evil/i);
});

it('H16: trailers of a response are removed, and its body is complete', async () => {
  const { response } = await stage.passes(request('GET /trailers'));
  expect(response.body.toString()).toBe('ok');
  expect(response.complete).toBe(true);
  expect(response.trailers).toEqual([]);
  expect(response.field('trailer')).toBe(undefined);
});
