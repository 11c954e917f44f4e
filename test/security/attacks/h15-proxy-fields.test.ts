import { expect, it } from 'vitest';
import { request, useAttackStage } from '../../harness/attack-stage.ts';
import { answer } from '../../harness/recording-upstream.ts';

const hopByHop = [
  ...['Proxy-Authenticate: Basic', 'Proxy-Authorization: Basic c4nary', 'Proxy-Connection: keep-alive, x'],
  ...['Keep-Alive: timeout=5', 'TE: trailers', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA'],
  ...['Proxy-Authentication-Info: c4nary', 'Trailer: X'],
];
const stage = useAttackStage({
  secrets: ['c4nary'],
  script: () =>
    answer('ok', `${[...hopByHop, 'Connection: X-Inner', 'X-Inner: secret', 'X-Kept: 1'].join('\r\n')}\r\n`),
});

/** H15: the credentials of one hop must not reach the next. RFC 9110 section 7.6.1. */
it('H15: hop-by-hop fields are removed from requests and responses', async () => {
  const { head, response } = await stage.passes(
    request('GET /stores', [...hopByHop, 'Connection: Upgrade, TE', 'X-Kept: 1']),
  );
  const names = hopByHop.map((line) => line.slice(0, line.indexOf(':')));
  for (const name of [...names, 'X-Inner', 'Connection']) {
    expect(response.fields(name).filter((value) => !/^(keep-alive|close|timeout=\d+)$/.test(value))).toEqual(
      [],
    );
    if (name !== 'Connection') expect(head).not.toMatch(new RegExp(`^${name}:`, 'im'));
  }
  expect(response.field('x-kept')).toBe('1');
  expect(head).toContain('X-Kept: 1');
});

/** H14: upgrades are ignored unless they are enabled. */
it.each(['websocket', 'h2c', 'TLS/1.0', 'anything'])(
  'H14: a request to upgrade to %s is handled as an ordinary one',
  async (protocol) => {
    const upgrade = [
      'Connection: Upgrade, HTTP2-Settings',
      `Upgrade: ${protocol}`,
      'Sec-WebSocket-Key: dGhlIHNhbXBsZQ==',
      'Sec-WebSocket-Version: 13',
    ];
    const { head, response } = await stage.passes(request('GET /stores', upgrade));
    expect(response.status).toBe(200);
    expect(head).not.toMatch(/upgrade|settings|websocket/i);
    await stage.demandsToken(request('GET /orders', upgrade));
  },
);
