import { spawnSync } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { version } from '../../../src/cli/command-io.ts';
import { parseOpenMetrics } from '../../harness/openmetrics.ts';
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

  it('is valid OpenMetrics with routes by template and refusals by reason', async () => {
    await fetch(`${shopward.url}/carts/c4nary-cart-id`);
    await fetch(`${shopward.url}/Carts/c4nary-cart-id`, {
      headers: { Authorization: 'Bearer c4nary-token' },
    });
    await fetch(`${shopward.url}/open/c4nary-path?q=c4nary-query`);
    const response = await fetch(`${shopward.adminUrl}/metrics`);
    const text = await response.text();
    expect(response.headers.get('content-type')).toMatch(
      /^application\/openmetrics-text; version=1\.0\.0; charset=utf-8$/,
    );
    expect(text).not.toContain('c4nary');

    const families = parseOpenMetrics(text);
    const sum = (family: string, name: string, wanted: Record<string, string>) =>
      (families.get(family)?.samples ?? [])
        .filter(
          (one) =>
            one.name === name && Object.entries(wanted).every(([key, value]) => one.labels[key] === value),
        )
        .reduce((total, { value }) => total + value, 0);
    const duration = 'http_server_request_duration_seconds';
    expect(families.get(duration)?.type).toBe('histogram');
    const count = (wanted: Record<string, string>) => sum(duration, `${duration}_count`, wanted);
    expect(count({ http_route: '/carts/{cart_id}', http_response_status_code: '401' })).toBe(2);
    expect(count({ http_route: '*', http_response_status_code: '200' })).toBe(1);
    const rejections = (wanted: Record<string, string>) =>
      sum('shopward_rejections', 'shopward_rejections_total', { enforced: 'true', ...wanted });
    expect(rejections({ rejection: 'access-token-missing' })).toBe(1);
    expect(rejections({ rejection: 'access-token-invalid', reason: 'malformed' })).toBe(1);
    for (const name of ['shopward_keys', 'shopward_protected_rows', 'shopward_config_last_reload_success']) {
      expect(families.get(name)?.type, name).toBe('gauge');
    }
    for (const { name, help } of families.values()) expect(help, name).toBeTruthy();
  });

  it.each([
    [undefined, 'application/openmetrics-text; version=1.0.0; charset=utf-8'],
    ['*/*', 'application/openmetrics-text; version=1.0.0; charset=utf-8'],
    ['image/png', 'application/openmetrics-text; version=1.0.0; charset=utf-8'],
    ['text/plain', 'text/plain; version=0.0.4; charset=utf-8'],
    ['text/plain;version=0.0.4;q=1,*/*;q=0.1', 'text/plain; version=0.0.4; charset=utf-8'],
    // Sent by Prometheus.
    [
      'application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1',
      'application/openmetrics-text; version=1.0.0; charset=utf-8',
    ],
  ])('for Accept: %s is %s', async (accept, type) => {
    const headers = accept === undefined ? {} : { Accept: accept };
    const response = await fetch(`${shopward.adminUrl}/metrics`, { headers });
    expect(response.headers.get('content-type')).toBe(type);
    expect((await response.text()).endsWith('# EOF\n')).toBe(type.startsWith('application/'));
  });

  const promtool = findProgram('promtool');
  it.skipIf(promtool === undefined)(
    'is read by Prometheus in the classic form, with the same samples',
    async () => {
      const read = async (accept: string) => {
        const response = await fetch(`${shopward.adminUrl}/metrics`, { headers: { Accept: accept } });
        return response.text();
      };
      const classic = await read('text/plain');
      const { status, stderr } = spawnSync(promtool ?? '', ['check', 'metrics'], {
        input: classic,
        encoding: 'utf8',
      });
      // promtool also dislikes some names of OpenTelemetry and Node. Only syntax errors exit with 1.
      expect(status, stderr).not.toBe(1);
      expect(classic).toMatch(/^# TYPE shopward_rejections_total counter$/m);
      // Node has these metrics only while such work exists.
      const namesOf = (text: string) => new Set(text.match(/^(?!nodejs_active_)[a-z]\w*/gm));
      expect(namesOf(classic)).toEqual(namesOf(await read('*/*')));
    },
  );

  it('names the version, and the start', async () => {
    const text = await (await fetch(`${shopward.adminUrl}/metrics`)).text();
    expect(text).toContain(`shopward_build_info{version="${version}",node="${process.version}"} 1\n`);
    const [, start] = /^shopward_start_time_seconds (\S+)$/m.exec(text) ?? [];
    expect(Math.abs(Date.now() / 1000 - Number(start))).toBeLessThan(3_600);
  });
});
