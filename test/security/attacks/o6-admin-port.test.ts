import { describe, expect, it } from 'vitest';
import { request, useAttackStage } from '../../harness/attack-stage.ts';
import { exchangeRaw } from '../../harness/raw-client.ts';

const stage = useAttackStage({ config: {} });

/** O6: operators have their own port. No request to the public port reaches it. */
describe('O6: the admin port', () => {
  it.each(['/metrics', '/livez', '/readyz', '/healthz', '/health', '/', '/admin', '/explain', '/purge'])(
    '%s on the public port goes to the upstream',
    async (path) => {
      for (const fields of [
        [],
        ['User-Agent: kube-probe/1.30'],
        ['User-Agent: GoogleHC/1.0'],
        ['X-Health: 1'],
      ]) {
        const { requestLine, response } = await stage.passes(request(`GET ${path}`, fields));
        expect(requestLine).toBe(`GET ${path} HTTP/1.1`);
        expect(response.body.toString()).toBe('ok');
      }
    },
  );

  it.each(['kube-probe/1.30', 'GoogleHC/1.0', 'ELB-HealthChecker/2.0', 'Prometheus/3.0'])(
    '401 without a token, with User-Agent: %s',
    async (agent) => {
      await stage.demandsToken(request('GET /orders', [`User-Agent: ${agent}`]));
    },
  );

  it.each([
    ...'evil.example evil.example:8081 127.0.0.1.evil.example localhost.'.split(' '),
    'localhost@evil.example',
    '',
  ])('421 from metrics, API and console for Host: %j (DNS rebinding)', async (host) => {
    for (const route of ['/metrics', '/api/rows', '/api/state', '/']) {
      const bytes = `GET ${route} HTTP/1.1\r\nHost: ${host}\r\n\r\n`;
      const response = await exchangeRaw(stage.shopward.adminPort, bytes);
      expect([route, response.status]).toEqual([route, 421]);
      expect(response.body.toString()).not.toContain('shopward_');
    }
  });

  it('/livez and /readyz send nothing to the upstream', async () => {
    const before = stage.upstream.bytes();
    for (let i = 0; i < 20; i += 1) {
      expect((await fetch(`${stage.shopward.adminUrl}/livez`)).status).toBe(200);
      expect((await fetch(`${stage.shopward.adminUrl}/readyz`)).status).toBe(200);
    }
    expect(stage.upstream.bytes()).toBe(before);
  });

  it('200 for /livez after malformed requests', async () => {
    for (const [bytes, status] of [
      ['GARBAGE\r\n\r\n', 400],
      ['GET http://[ HTTP/1.1\r\nHost: localhost\r\n\r\n', 404],
      ['GET //\\ HTTP/1.1\r\nHost: localhost\r\n\r\n', 404],
    ] as const) {
      expect((await exchangeRaw(stage.shopward.adminPort, bytes)).status).toBe(status);
    }
    expect((await fetch(`${stage.shopward.adminUrl}/livez`)).status).toBe(200);
  });
});
