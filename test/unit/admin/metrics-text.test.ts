import { spawnSync } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { version } from '../../../src/cli/command-io.ts';
import { findProgram } from '../../harness/programs.ts';
import { answer, type RecordingUpstream, startRecordingUpstream } from '../../harness/recording-upstream.ts';
import type { RunningShopward } from '../../harness/shopward.ts';
import { startShopwardHere } from '../../harness/shopward-here.ts';

describe('/metrics', () => {
  let shopward: RunningShopward;
  let upstream: RecordingUpstream;

  beforeAll(async () => {
    upstream = await startRecordingUpstream(() => answer());
    shopward = await startShopwardHere({ upstream: `http://127.0.0.1:${upstream.port}` });
  });
  afterAll(async () => {
    await shopward?.stop();
    await upstream?.close();
  });

  const read = async () => (await fetch(`${shopward.adminUrl}/metrics`)).text();

  it('counts requests by the template of their row, and refusals by reason', async () => {
    await fetch(`${shopward.url}/carts/c4nary-cart-id`);
    const headers = { Authorization: 'Bearer c4nary-token' };
    await fetch(`${shopward.url}/Carts/c4nary-cart-id`, { headers });
    await fetch(`${shopward.url}/open/c4nary-path?q=c4nary-query`);
    const duration = 'http_server_request_duration_seconds';
    const status = 'http_response_status_code';
    // A request is counted after its response, which the client may read first.
    await expect
      .poll(async () => (await read()).split('\n'))
      .toEqual(
        expect.arrayContaining([
          `# TYPE ${duration} histogram`,
          `${duration}_count{http_request_method="GET",http_route="/carts/{cart_id}",${status}="401"} 2`,
          `${duration}_count{http_request_method="GET",http_route="*",${status}="200"} 1`,
          '# TYPE shopward_rejections_total counter',
          'shopward_rejections_total{rejection="access-token-invalid",reason="malformed",enforced="true"} 1',
          ...['shopward_keys', 'shopward_protected_rows', 'shopward_config_last_reload_success'].map(
            (name) => `# TYPE ${name} gauge`,
          ),
        ]),
      );
    const text = await read();
    expect(text).not.toContain('c4nary');
    expect(text).toMatch(
      /^shopward_rejections_total\{rejection="access-token-missing",.*enforced="true"\} 1$/m,
    );
  });

  it('has one form, whatever Accept asks for', async () => {
    for (const accept of ['*/*', 'application/openmetrics-text;version=1.0.0', 'image/png']) {
      const { headers } = await fetch(`${shopward.adminUrl}/metrics`, { headers: { Accept: accept } });
      expect(headers.get('content-type'), accept).toBe('text/plain; version=0.0.4; charset=utf-8');
    }
  });

  const promtool = findProgram('promtool');
  it.skipIf(promtool === undefined)('is read by Prometheus', async () => {
    const given = { input: await read(), encoding: 'utf8' } as const;
    const { status, stderr } = spawnSync(promtool ?? '', ['check', 'metrics'], given);
    // promtool also dislikes some names of OpenTelemetry and Node. Only syntax errors exit with 1.
    expect(status, stderr).not.toBe(1);
    expect(stderr).not.toContain('no help text');
  });

  it('names the version, and the start', async () => {
    const text = await read();
    expect(text).toContain(`shopward_build_info{version="${version}",node="${process.version}"} 1\n`);
    const [, start] = /^shopward_start_time_seconds (\S+)$/m.exec(text) ?? [];
    expect(Math.abs(Date.now() / 1000 - Number(start))).toBeLessThan(3_600);
  });
});
