import { describe, expect, it } from 'vitest';
import { request, useAttackStage } from '../harness/attack-stage.ts';
import { parseOpenMetrics } from '../harness/openmetrics.ts';
import { exchangeRaw } from '../harness/raw-client.ts';

describe('the admin port on loopback', () => {
  const stage = useAttackStage();
  /** Its connection is closed: that nothing is left of the file need not wait until `fetch` drops one that is idle. */
  const ask = (path: string, host = 'localhost') =>
    exchangeRaw(stage.shopward.adminPort, request(`GET ${path}`, [], '', host));

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
});
