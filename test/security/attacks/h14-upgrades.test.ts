import { expect, it } from 'vitest';
import { expectRejection, request, useAttackStage } from '../../harness/attack-stage.ts';
import { answer } from '../../harness/recording-upstream.ts';

let release: () => void = () => {};
const stage = useAttackStage({
  config: { upstream: { webSocket: true } },
  script: ({ head }) => {
    if (/\r\nupgrade: websocket\r\n/i.test(head)) {
      return 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n';
    }
    if (!head.startsWith('GET /slow')) return undefined;
    return new Promise((resolve) => {
      release = () => resolve(answer('slow'));
    });
  },
});

const handshake = (path: string, ...fields: string[]) =>
  request(`GET ${path}`, [
    ...['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13'],
    ...['Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==', ...fields],
  ]);

/** H14: with WebSockets enabled, a handshake is checked as any request is. */
it('H14: a handshake on a protected path needs a token, and a bad target or Connection is 400', async () => {
  await stage.demandsToken(handshake('/orders'));
  await stage.demandsToken(handshake('/Orders;x/'));
  await stage.refuses(handshake('/orders', 'Authorization: Bearer x'), 401, '001');
  await stage.refuses(handshake('/x/../orders'), 400, 'bad-request-target');
  await stage.refuses(handshake('/socket', 'Connection: authorization'), 400, 'bad-request-fields');
});

it.each(['h2c', 'TLS/1.0', 'websocket2', 'h2c, websocket'])(
  'H14: a request to upgrade to %s is forwarded as an ordinary one',
  async (protocol) => {
    const fields = [
      'Connection: Upgrade, HTTP2-Settings',
      `Upgrade: ${protocol}`,
      'HTTP2-Settings: AAMAAABk',
    ];
    const { head, response } = await stage.passes(request('GET /stores', fields));
    expect(response.status).toBe(200);
    expect(head).not.toMatch(/upgrade|settings/i);
  },
);

it('H14: 400 for a handshake behind a pending request, after its response', async () => {
  const { length } = stage.upstream.requestLines;
  const connection = await stage.send(request('GET /slow') + handshake('/socket'));
  await expect.poll(() => stage.upstream.requestLines.length).toBe(length + 1);
  release();
  expect((await connection.readResponse()).body.toString()).toBe('slow');
  expectRejection(await connection.readResponse(), 400, 'bad-request');
  expect((await connection.readAll()).toString()).toBe('');
  connection.close();
});

it('H14: 405 for a CONNECT behind a pending request, after its response', async () => {
  const { length } = stage.upstream.requestLines;
  const connection = await stage.send(request('GET /slow') + request('CONNECT shop.example:443'));
  await expect.poll(() => stage.upstream.requestLines.length).toBe(length + 1);
  release();
  expect((await connection.readResponse()).body.toString()).toBe('slow');
  expectRejection(await connection.readResponse(), 405, 'method-not-allowed');
  connection.close();
});
