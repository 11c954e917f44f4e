import { expect, it } from 'vitest';
import { request, useAttackStage } from '../../harness/attack-stage.ts';

const stage = useAttackStage();

/** J12: a token is read from Authorization only. Elsewhere it would get into logs and into requests of other people. */
it.each<[string, (token: string) => string]>([
  ['access_token in the query', (token) => request(`GET /orders?access_token=${token}`)],
  ['authorization in the query', (token) => request(`GET /orders?authorization=Bearer%20${token}`)],
  [
    'a cookie',
    (token) => request('GET /orders', [`Cookie: access_token=${token}; Authorization=Bearer ${token}`]),
  ],
  ['X-Authorization', (token) => request('GET /orders', [`X-Authorization: Bearer ${token}`])],
  ['Proxy-Authorization', (token) => request('GET /orders', [`Proxy-Authorization: Bearer ${token}`])],
  ['X-Forwarded-Access-Token', (token) => request('GET /orders', [`X-Forwarded-Access-Token: ${token}`])],
  ['X-Agent-Authorization', (token) => request('GET /orders', [`X-Agent-Authorization: Bearer ${token}`])],
  [
    'a form body',
    (token) => {
      const body = `access_token=${token}`;
      const type = 'Content-Type: application/x-www-form-urlencoded';
      return request('POST /returns', [type, `Content-Length: ${body.length}`], body);
    },
  ],
])('J12: 401 for a token in: %s', async (_, attack) => {
  await stage.demandsToken(attack(stage.shopward.issueToken()));
});

it('J12: a token in the query of an open route is forwarded, and not logged', async () => {
  const token = stage.shopward.issueToken();
  const { requestLine } = await stage.passes(request(`GET /stores?access_token=${token}`));
  expect(requestLine).toContain(token);
  const line = await stage.shopward.waitForLog(({ path }) => path === '/stores');
  expect(JSON.stringify(line)).not.toContain('access_token');
});

it('J12: a refresh token in a path is cut out of the log', async () => {
  const token = stage.shopward.issueToken();
  await stage.passes(request(`GET /stores/${token}`));
  await stage.demandsToken(request('DELETE /refresh-tokens/c4nary'));
  const line = await stage.shopward.waitForLog(({ route }) => route === '/refresh-tokens/{refresh_token_id}');
  expect(JSON.stringify(line)).not.toContain('c4nary');
});
