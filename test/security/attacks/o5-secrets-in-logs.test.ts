import { expect, it } from 'vitest';
import { request, useAttackStage } from '../../harness/attack-stage.ts';
import { answer } from '../../harness/recording-upstream.ts';

const secret = 'c4nary';
const stage = useAttackStage({
  secrets: [secret],
  asProcess: true,
  config: { log: { level: 'trace' }, admin: { token: `${secret}-admin` } },
  env: { SHOP_SECRET: `${secret}-environment` },
  script: ({ head }) => {
    if (head.startsWith('GET /broken'))
      return `HTTP/1.1 200 ${secret}\x01\r\nX: ${secret}\r\nContent-Length: 3\r\n\r\n${secret}`;
    return answer(secret, `Set-Cookie: a=${secret}\r\nX-Debug: ${secret}\r\nLocation: /?${secret}\r\n`);
  },
});

const fields = [
  ...[
    `Cookie: session=${secret}`,
    `X-Anonymous-Customer-Unique-Id: ${secret}`,
    `Proxy-Authorization: Basic ${secret}`,
  ],
  ...[
    // This value is logged; it must not become a log line of its own.
    'User-Agent: agent\t{"level":"fatal"}',
    `Referer: https://x/?${secret}`,
    `X-Agent-Authorization: Bearer ${secret}`,
  ],
  ...[
    `X-Request-Id: ${secret}`,
    `X-Forwarded-For: ${secret}`,
    `If-Match: "${secret}"`,
    `X-${secret}: ${secret}`,
  ],
];

/** O5: no secret of a request is in a log line, a metric or an error answer of shopward. */
it.each<[string, string, readonly string[], string?]>([
  ['an open route', `GET /stores?token=${secret}`, []],
  ['a bad token', 'GET /orders', [`Authorization: Bearer ${secret}`]],
  ['a token of three parts', 'GET /orders', [`Authorization: Bearer ${secret}.${secret}.${secret}`]],
  ['two credentials', 'GET /orders', [`Authorization: ${secret}`, `Authorization: ${secret}`]],
  ['a refresh token in the path', `DELETE /refresh-tokens/${secret}`, []],
  ['a refresh token in a longer path', `DELETE /x/y/refresh-tokens/${secret}`, []],
  ['a refresh token after another spelling of its resource', `DELETE /REFRESH-TOKENS;x/${secret}/`, []],
  ['a refresh token after a script name', `DELETE /index.phprefresh-tokens/${secret}`, []],
  ['a refresh token after an empty segment', `DELETE /refresh-tokens//${secret}`, []],
  [
    'a body',
    'POST /access-tokens',
    ['Content-Type: application/json', 'Content-Length: 21'],
    `{"password":"${secret}"}`,
  ],
  ['a bad Host', `GET /stores?${secret}`, [`Host: ${secret}@x`]],
  ['a bad target', `GET /refresh-tokens/${secret}/../x?${secret}`, []],
  ['a bad method', `${secret.toUpperCase()} /stores`, []],
  ['a broken answer', `GET /broken?${secret}`, []],
  ['a long segment', `GET /stores/${secret.repeat(40)}`, []],
])('O5: no secret is printed for %s', async (_, line, more, body = '') => {
  const connection = await stage.send(request(line, [...fields, ...more], body));
  const response = await connection.readResponse();
  connection.close();
  if (response.status >= 400) {
    expect(response.body.toString()).not.toContain(secret);
    expect(response.rawFields.join('\n')).not.toContain(secret);
  }
  const metrics = await fetch(`${stage.shopward.adminUrl}/metrics`, {
    headers: { authorization: `Bearer ${secret}-admin` },
  });
  expect(metrics.status).toBe(200);
  expect(await metrics.text()).not.toContain(secret);
});

it('O5: each log line is JSON, also for a path with quotes, braces and U+2028', async () => {
  const { response } = await stage.passes(request('GET /stores/%22%7D%E2%80%A8'));
  const id = response.field('x-request-id');
  await stage.shopward.waitForLog(({ requestId }) => requestId === id);
  const lines = stage.shopward.log();
  expect(lines.every((line) => typeof line.level === 'string')).toBe(true);
  expect(lines.some(({ level }) => level === 'fatal')).toBe(false);
});
