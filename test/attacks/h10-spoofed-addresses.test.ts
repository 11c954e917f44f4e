import { describe, expect, it } from 'vitest';
import { request, useAttackStage } from '../harness/attack-stage.ts';

const spoofed = [
  ...[
    'X-Forwarded-For: 1.2.3.4',
    'x-forwarded-for: 5.6.7.8',
    'X-Forwarded-Host: evil.example',
    'X-Forwarded-Port: 666',
  ],
  ...[
    'X-Forwarded-Proto: https, http',
    'X-Forwarded-Ssl: on',
    'X-Forwarded-Server: evil.example',
    'X-Request-Id: chosen',
  ],
  ...[
    'Forwarded: for=1.2.3.4;host=evil.example',
    'X-Real-IP: 1.2.3.4',
    'True-Client-IP: 1.2.3.4',
    'CF-Connecting-IP: 1.2.3.4',
  ],
  ...[
    'X-Client-IP: 1.2.3.4',
    'Client-IP: 1.2.3.4',
    'Fastly-Client-IP: 1.2.3.4',
    'X-Cluster-Client-IP: 1.2.3.4',
  ],
  ...['Proxy: http://evil.example', 'Via: 1.0 evil.example'],
  ...['X-Url-Scheme: https', 'X-Scheme: https', 'Front-End-Https: on', 'X-Host: evil.example'],
  ...['X-HTTP-Host-Override: evil.example', 'X-Original-Host: evil.example', 'X-Original-For: 1.2.3.4'],
  ...['X-Host-Override: evil.example', 'X-Real-Proto: https', 'X-ARR-SSL: evil', 'WL-Proxy-SSL: true-evil'],
  ...['WL-Proxy-Client-IP: 1.2.3.4', 'X-Remote-Addr: 1.2.3.4', 'X-Remote-IP: 1.2.3.4', 'CF-Visitor: https'],
  ...['X-Azure-ClientIP: 1.2.3.4', 'CloudFront-Viewer-Address: 1.2.3.4:1', 'X-Script-Name: /evil'],
  ...['CloudFront-Forwarded-Proto: https', 'X-Envoy-External-Address: 1.2.3.4', 'X-Port: 666'],
];

/** H10: whoever is believed about himself is who he says. Fastify CVE-2026-3635. */
describe('H10: of a peer that nobody trusts', () => {
  const stage = useAttackStage();

  it('nothing is believed', async () => {
    const { head, fields } = await stage.passes(request('GET /stores', spoofed));
    expect(head.replace(/^via:.*\r\n/im, '')).not.toMatch(/1\.2\.3\.4|5\.6\.7\.8|evil|https|chosen|666|ssl/i);
    expect(fields('x-forwarded-for')).toEqual(['127.0.0.1']);
    expect(fields('x-forwarded-proto')).toEqual(['http']);
    expect(fields('x-forwarded-host')).toEqual(['shop.example']);
    const line = await stage.shopward.waitForLog(({ path }) => path === '/stores');
    expect(line.clientAddress).toBe('127.0.0.1');
    expect(line.requestId).not.toBe('chosen');
  });

  it.each([
    'X-Forwarded-For: 127.0.0.1',
    'X-Real-IP: 127.0.0.1',
    'X-Forwarded-User: admin',
    'X-Forwarded-Access-Token: x',
  ])('neither does %s open anything', async (field) => {
    await stage.demandsToken(request('GET /orders', [field]));
  });
});

describe('H10: of a trusted peer', () => {
  const stage = useAttackStage({ config: { trustedProxies: ['127.0.0.0/8'] } });

  it('the address next to it, its scheme and request id are', async () => {
    const { head, fields } = await stage.passes(request('GET /stores', spoofed));
    expect(head).not.toMatch(/evil\.example:|host=evil|Real-IP|True-Client|CF-Conn/i);
    // What stands left of the client's address is what the client wrote.
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
  ])('X-Forwarded-For: %s breaks nothing', async (value) => {
    await stage.passes(request('GET /stores', [`X-Forwarded-For: ${value.slice(0, 16_000)}`]));
  });

  it('a request id that could be anything else is not taken', async () => {
    for (const id of ['a b', '<script>', 'x'.repeat(500), 'a"b', '']) {
      const { fields } = await stage.passes(request('GET /stores', [`X-Request-Id: ${id}`]));
      expect(fields('x-request-id')).toEqual([expect.stringMatching(/^[\w.:+/=-]{1,200}$/)]);
      expect(fields('x-request-id')).not.toEqual([id]);
    }
  });
});
