import { describe, expect, it } from 'vitest';
import { request, useAttackStage } from '../../harness/attack-stage.ts';

/** The corpus has all fields of this kind, each by itself. */
const spoofed = [
  'X-Forwarded-For: 1.2.3.4',
  'x-forwarded-for: 5.6.7.8',
  'X-Forwarded-Host: evil.example',
  'X-Forwarded-Proto: https, http',
  'Forwarded: for=1.2.3.4;host=evil.example',
  'X-Request-Id: chosen',
  'X-Real-IP: 1.2.3.4',
  'True-Client-IP: 1.2.3.4',
  'CF-Connecting-IP: 1.2.3.4',
  'Via: 1.0 evil.example',
];

/** Fields by which some proxy names its client, or gives the shop orders. */
const ofProxies = [
  ...'Client-Cert Client-Cert-Chain SSL-Client-Cert Ssl-Client-Verify X-SSL-Client-Verify'.split(' '),
  ...'X-SSL-Client-S-DN X-Client-Cert X-Client-Cert-DN X-Client-Verify X-ARR-ClientCert'.split(' '),
  ...'WL-Proxy-Client-Cert WL-Proxy-Client-Keysize Proxy-Auth-Cert Proxy-User-DN Proxy-IP'.split(' '),
  ...'X-Amzn-Mtls-Clientcert-Leaf X-Amzn-Oidc-Identity CF-Client-Cert-Der-Base64'.split(' '),
  ...'CF-Access-Authenticated-User-Email X-Goog-Authenticated-User-Email'.split(' '),
  ...'X-MS-Client-Principal-Name X-Auth-Request-User X-WebAuth-User Remote-Groups'.split(' '),
  ...'Tailscale-User-Login X-Consumer-Username X-Credential-Identifier X-authentik-username'.split(' '),
  ...'iv-user X-Forwarded-Client-Cert X-Envoy-Original-Path X-Envoy-Internal'.split(' '),
  ...'X-Envoy-Peer-Metadata X-Sendfile-Type X-Accel-Mapping X-Accel-Redirect X-Forwarded-User'.split(' '),
];

/** H10: a client must not choose its own address, scheme, host or user. Fastify CVE-2026-3635. */
describe('H10: a peer that is not trusted', () => {
  const stage = useAttackStage();

  it('its forwarding fields are removed or replaced, and the log has its real address', async () => {
    const { head, fields } = await stage.passes(request('GET /stores', spoofed));
    expect(head.replace(/^via:.*\r\n/im, '')).not.toMatch(/1\.2\.3\.4|5\.6\.7\.8|evil|https|chosen/i);
    expect(fields('x-forwarded-for')).toEqual(['127.0.0.1']);
    expect(fields('x-forwarded-proto')).toEqual(['http']);
    expect(fields('x-forwarded-host')).toEqual(['shop.example']);
    const line = await stage.shopward.waitForLog(({ path }) => path === '/stores');
    expect(line.clientAddress).toBe('127.0.0.1');
    expect(line.requestId).not.toBe('chosen');
  });
});

describe('H10: a trusted proxy, and `trustedFields`', () => {
  const stage = useAttackStage({ config: { trustedProxies: ['127.0.0.0/8'], trustedFields: ofProxies } });
  it('the fields are forwarded', async () => {
    const sent = ofProxies.map((name) => `${name}: admin`);
    const { fields } = await stage.passes(request('GET /stores', sent));
    for (const name of ofProxies) expect([name, ...fields(name)]).toEqual([name, 'admin']);
  });
});

describe('H10: a trusted peer', () => {
  const stage = useAttackStage({ config: { trustedProxies: ['127.0.0.0/8'] } });

  it('the last forwarded address and the request id are used, other fields are not', async () => {
    const { head, fields } = await stage.passes(request('GET /stores', spoofed));
    expect(head).not.toMatch(/evil\.example:|host=evil|Real-IP|True-Client|CF-Conn/i);
    // The client wrote the addresses left of its own.
    expect(fields('x-forwarded-for')).toEqual(['5.6.7.8, 127.0.0.1']);
    expect(fields('x-request-id')).toEqual(['chosen']);
    expect(fields('x-forwarded-host')).toEqual(['shop.example']);
    const line = await stage.shopward.waitForLog(({ requestId }) => requestId === 'chosen');
    expect(line.clientAddress).toBe('5.6.7.8');
  });

  it.each([
    'not-an-address',
    '1.2.3.4, ,',
    '1.2.3.4\tx',
    '999.1.1.1',
    `${'1.1.1.1,'.repeat(2000)}1.1.1.1`,
    '<script>',
    '::ffff:1.2.3.4',
  ])('passes with X-Forwarded-For: %s', async (value) => {
    await stage.passes(request('GET /stores', [`X-Forwarded-For: ${value.slice(0, 16_000)}`]));
  });

  it('a request id that is empty, too long or has other characters is replaced', async () => {
    for (const id of ['a b', '<script>', 'x'.repeat(500), 'a"b', '']) {
      const { fields } = await stage.passes(request('GET /stores', [`X-Request-Id: ${id}`]));
      expect(fields('x-request-id')).toEqual([expect.stringMatching(/^[\w.:+/=-]{1,200}$/)]);
      expect(fields('x-request-id')).not.toEqual([id]);
    }
  });
});
