import { describe, expect, it } from 'vitest';
import { request, useAttackStage } from '../harness/attack-stage.ts';
import { parseOpenMetrics } from '../harness/openmetrics.ts';
import { exchangeRaw, type RawResponse } from '../harness/raw-client.ts';

describe('the admin port on loopback', () => {
  const stage = useAttackStage();
  /** Its connection is closed: that nothing is left of the file need not wait until `fetch` drops one that is idle. */
  const ask = (path: string, host = 'localhost') =>
    exchangeRaw(stage.shopward.adminPort, request(`GET ${path}`, [], '', host));
  const jsonOf = ({ body }: RawResponse) => JSON.parse(body.toString()) as unknown;

  it('tells that it lives and is ready, with reasons', async () => {
    const livez = await ask('/livez');
    expect([livez.status, jsonOf(livez)]).toEqual([200, { status: 'ok' }]);
    const readyz = await ask('/readyz');
    expect([readyz.status, jsonOf(readyz)]).toEqual([200, { status: 'ready', reasons: expect.any(Array) }]);
  });

  it('exposes OpenMetrics: what was decided, by template, never by path', async () => {
    await stage.demandsToken(request('GET /orders/c4nary-id'));
    await stage.demandsToken(request('GET /orders/other-id'));
    await stage.passes(request('GET /stores/c4nary-id?c4nary'));
    await stage.refuses(request('GET /c4nary/../x'), 400, 'bad-request-target');
    await stage.shopward.waitForLog(({ reason }) => reason === 'dot-segment');

    const response = await ask('/metrics');
    expect(response.field('content-type')).toMatch(
      /^application\/openmetrics-text; ?version=1\.0\.0; ?charset=utf-8$/,
    );
    const text = response.body.toString();
    expect(text).not.toContain('c4nary');
    const families = parseOpenMetrics(text);
    const value = (family: string, name: string, labels: object) =>
      families
        .get(family)
        ?.samples.find(
          (one) =>
            one.name === name && Object.entries(labels).every(([key, wanted]) => one.labels[key] === wanted),
        )?.value;
    const refused = {
      http_request_method: 'GET',
      http_route: '/orders/{order_id}',
      http_response_status_code: '401',
    };
    expect(
      value('http_server_request_duration_seconds', 'http_server_request_duration_seconds_count', refused),
    ).toBe(2);
    const missing = { rejection: 'access-token-missing', enforced: 'true' };
    expect(value('shopward_rejections', 'shopward_rejections_total', missing)).toBe(2);
    const target = { rejection: 'bad-request-target', reason: 'dot-segment' };
    expect(value('shopward_rejections', 'shopward_rejections_total', target)).toBe(1);
    expect(value('shopward_protected_rows', 'shopward_protected_rows', {})).toBe(56);
    expect(value('shopward_config_last_reload_success', 'shopward_config_last_reload_success', {})).toBe(1);
    expect(value('http_server_active_requests', 'http_server_active_requests', {})).toBe(0);
  });

  it('no request adds a series but by what is in the list', async () => {
    const series = async () => {
      const families = parseOpenMetrics((await ask('/metrics')).body.toString());
      const own = [...families].filter(([name]) => /^(http|shopward)_/.test(name));
      return own.flatMap(([, { samples }]) =>
        samples.map(({ name, labels }) => name + JSON.stringify(labels)),
      );
    };
    await stage.passes(request('GET /stores/1'));
    await stage.demandsToken(request('GET /orders/1'));
    const before = await series();
    for (let i = 0; i < 50; i += 1) {
      await stage.passes(
        request(`GET /stores/${i}/x-${i}?y=${i}`, [`User-Agent: u-${i}`, `X-Request-Id: r-${i}`]),
      );
      await stage.demandsToken(request(`GET /orders/${i}`, [`Store: s-${i}`]));
    }
    expect(await series()).toEqual(before);
  });

  it.each(['localhost', '127.0.0.1', '[::1]', 'LOCALHOST:1'])('may be addressed as %s', async (host) => {
    expect((await ask('/metrics', host)).status).toBe(200);
  });

  it('any other name is 421, but for health', async () => {
    const evil = 'evil.example';
    expect((await ask('/metrics', evil)).status).toBe(421);
    expect((await ask('/', evil)).status).toBe(421);
    expect((await ask('/livez', evil)).status).toBe(200);
    const readyz = await ask('/readyz', evil);
    expect([readyz.status, jsonOf(readyz)]).toEqual([200, { status: 'ready' }]);
  });
});

describe('the admin port off loopback', () => {
  const token = 'a-long-admin-token-for-operators';
  const stage = useAttackStage({
    config: { admin: { host: '0.0.0.0', token, hosts: ['ops.example'] } },
    secrets: [token],
  });
  const ask = (path: string, ...fields: string[]) =>
    exchangeRaw(
      stage.shopward.adminPort,
      ['GET ', path, ' HTTP/1.1\r\n', ...fields.map((field) => `${field}\r\n`), '\r\n'].join(''),
    );
  const named = 'Host: ops.example:8081';

  it('wants the token for everything but health, of which it tells the status alone', async () => {
    expect((await ask('/livez', named)).status).toBe(200);
    expect(JSON.parse((await ask('/readyz', named)).body.toString())).toEqual({ status: 'ready' });
    for (const field of [
      [],
      ['Authorization: Bearer x'],
      [`Authorization: ${token}`],
      [`X-Token: ${token}`],
      [`Authorization: Bearer ${token}x`],
    ]) {
      const response = await ask('/metrics', named, ...field);
      expect(response.status).toBe(401);
      expect(response.field('www-authenticate')).toMatch(/^Bearer /);
      expect(response.body.toString()).not.toContain('shopward_');
    }
    expect((await ask(`/metrics?token=${token}`, named)).status).toBe(401);
    expect((await ask('/metrics', named, `Authorization: Bearer ${token}`)).status).toBe(200);
    const readyz = await ask('/readyz', named, `Authorization: Bearer ${token}`);
    expect(JSON.parse(readyz.body.toString())).toEqual({ status: 'ready', reasons: expect.any(Array) });
  });

  it('the token does not help under another name', async () => {
    expect((await ask('/metrics', 'Host: evil.example', `Authorization: Bearer ${token}`)).status).toBe(421);
  });
});
