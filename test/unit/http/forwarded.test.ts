import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { buildRequestRules } from '../../../src/http/canonicalise-request.ts';
import { fieldValues } from '../../../src/http/field-list.ts';
import { accepted, sampleHead } from './sample-request.ts';

const trusting = { remoteAddress: '10.0.0.1', trustedProxies: ['10.0.0.0/8', 'fd00::/8'] };

describe('X-Forwarded-For', () => {
  it.each([
    ['none', undefined, '10.0.0.1', '10.0.0.1'],
    ['one client', '203.0.113.9', '203.0.113.9', '203.0.113.9, 10.0.0.1'],
    ['a client that lies', '6.6.6.6, 203.0.113.9', '203.0.113.9', '203.0.113.9, 10.0.0.1'],
    ['two proxies', '6.6.6.6,203.0.113.9 , 10.9.9.9', '203.0.113.9', '203.0.113.9, 10.9.9.9, 10.0.0.1'],
    ['trusted proxies only', '10.1.1.1, 10.2.2.2', '10.1.1.1', '10.1.1.1, 10.2.2.2, 10.0.0.1'],
    ['no address', 'unknown', '10.0.0.1', '10.0.0.1'],
    ['no address before a proxy', 'x"y\\, 10.2.2.2', '10.2.2.2', '10.2.2.2, 10.0.0.1'],
    ['octal', '0177.0.0.1', '10.0.0.1', '10.0.0.1'],
    ['a number', '127', '10.0.0.1', '10.0.0.1'],
    ['an empty entry', '203.0.113.9,', '10.0.0.1', '10.0.0.1'],
    ['a port', '203.0.113.9:4711', '203.0.113.9', '203.0.113.9, 10.0.0.1'],
    ['IPv6', '2001:db8::7', '2001:db8::7', '2001:db8::7, 10.0.0.1'],
    ['IPv6 and port', '[2001:db8::7]:80, fd00::1', '2001:db8::7', '2001:db8::7, fd00::1, 10.0.0.1'],
    ['mapped IPv4', '::ffff:203.0.113.9', '203.0.113.9', '203.0.113.9, 10.0.0.1'],
    ['mapped IPv4 in hexadecimal', '::FFFF:cb00:7109', '203.0.113.9', '203.0.113.9, 10.0.0.1'],
    ['mapped IPv4 in full', '0:0:0:0:0:ffff:cb00:7109', '203.0.113.9', '203.0.113.9, 10.0.0.1'],
  ])('from a trusted peer: %s', (_name, sent, clientAddress, value) => {
    const fields = sent === undefined ? [] : ['x-forwarded-for', sent];
    const request = accepted(sampleHead({ fields }), trusting);
    expect(request.clientAddress).toBe(clientAddress);
    expect(fieldValues(request.fields, 'x-forwarded-for')).toEqual([value]);
  });

  it('from a trusted peer: several lines are one list', () => {
    const fields = ['X-Forwarded-For', '203.0.113.9', 'A', '1', 'X-FORWARDED-FOR', '10.2.2.2'];
    const request = accepted(sampleHead({ fields }), trusting);
    expect(request.clientAddress).toBe('203.0.113.9');
    expect(fieldValues(request.fields, 'x-forwarded-for')).toEqual(['203.0.113.9, 10.2.2.2, 10.0.0.1']);
  });

  it('from a trusted peer: the last 64 of a long list are kept', () => {
    const sent = Array.from({ length: 70 }, (_, i) => `10.1.1.${i}`).join(', ');
    const request = accepted(sampleHead({ fields: ['X-Forwarded-For', `6.6.6.6, ${sent}`] }), trusting);
    expect(request.clientAddress).toBe('10.1.1.6');
    const [value] = fieldValues(request.fields, 'x-forwarded-for');
    expect(value?.split(', ')).toHaveLength(65);
    expect(value?.endsWith('10.1.1.68, 10.1.1.69, 10.0.0.1')).toBe(true);
  });

  it('from a trusted peer on a dual-stack socket is kept', () => {
    const head = sampleHead({ fields: ['X-Forwarded-For', '203.0.113.9'] });
    const request = accepted(head, { ...trusting, remoteAddress: '::ffff:10.0.0.1' });
    expect(fieldValues(request.fields, 'x-forwarded-for')).toEqual(['203.0.113.9, 10.0.0.1']);
  });
});

describe('X-Forwarded-Proto', () => {
  it.each([
    ['https', false, 'https'],
    ['HTTPS', false, 'https'],
    ['http', true, 'http'],
    ['https,http', false, 'http'],
    ['https, https', false, 'http'],
    ['ftp', true, 'https'],
    ['', true, 'https'],
  ])('from a trusted peer: %j, TLS %s -> %s', (sent, isTls, scheme) => {
    const head = sampleHead({ fields: ['X-Forwarded-Proto', sent] });
    const request = accepted(head, { ...trusting, isTls });
    expect(request.scheme).toBe(scheme);
    expect(fieldValues(request.fields, 'x-forwarded-proto')).toEqual([scheme]);
  });

  it('is that of the connection if the field is missing', () => {
    expect(accepted(sampleHead(), { isTls: true }).scheme).toBe('https');
    expect(accepted(sampleHead(), { isTls: false }).scheme).toBe('http');
  });
});

it('X-Request-Id is random by default', () => {
  const { generateRequestId } = buildRequestRules({ upstreamHost: 'a', requestBodyBytes: 1 });
  const ids = new Set(Array.from({ length: 1000 }, generateRequestId));
  expect(ids.size).toBe(1000);
  for (const id of ids) expect(id).toMatch(/^[0-9a-f-]{36}$/);
});

it('X-Request-Id of a trusted peer has at most 128 characters', () => {
  const idOf = (sent: string) => accepted(sampleHead({ fields: ['X-Request-Id', sent] }), trusting).requestId;
  expect([idOf('a'.repeat(128)).length, idOf('a'.repeat(129))]).toEqual([128, 'generated-id']);
});

describe('Host and X-Forwarded-Host', () => {
  it.each([
    ['an untrusted peer', { trustedFields: ['X-Forwarded-Host'] }, 'shop.example'],
    ['a trusted peer', trusting, 'shop.example'],
    ['a trusted peer, trusted itself', { ...trusting, trustedFields: ['x-forwarded-HOST'] }, 'front.example'],
  ])('X-Forwarded-Host from %s', (_name, options, value) => {
    const request = accepted(sampleHead({ fields: ['X-Forwarded-Host', 'FRONT.example'] }), options);
    expect(fieldValues(request.fields, 'x-forwarded-host')).toEqual([value]);
    expect(request.host).toBe('shop.example');
  });

  it('an invalid X-Forwarded-Host from a trusted peer is replaced', () => {
    const head = sampleHead({ fields: ['X-Forwarded-Host', 'a@b/c'] });
    const request = accepted(head, { ...trusting, trustedFields: ['X-Forwarded-Host'] });
    expect(fieldValues(request.fields, 'x-forwarded-host')).toEqual(['shop.example']);
  });
});

describe('trusted fields', () => {
  const trustedFields = ['X-Real-IP', 'X-User-Id', 'X-Forwarded-Port', 'Store'];
  const fields = ['x-real-ip', '1', 'X-User-Id', '7', 'X-Forwarded-Port', '443', 'Store', 'DE'];
  const sent = [...fields, 'True-Client-IP', '1'];

  it('are kept from a trusted peer, and dropped from others', () => {
    const trusted = accepted(sampleHead({ fields: sent }), { ...trusting, trustedFields }).fields;
    expect(trusted.slice(2, -8)).toEqual(fields);
    expect(accepted(sampleHead({ fields: sent }), { trustedFields }).fields.slice(2, -8)).toEqual([]);
  });

  it('with an invalid CIDR, building the rules throws', () => {
    const build = () =>
      buildRequestRules({ upstreamHost: 'a', requestBodyBytes: 1, trustedProxies: ['10.0.0.0/33'] });
    expect(build).toThrow('10.0.0.0/33');
  });
});

it('a kept client address does not keep the long field in memory', () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  collect();
  const before = process.memoryUsage().heapUsed;
  const kept = Array.from({ length: 500 }, (_, i) => {
    const list = Buffer.from(`${'y'.repeat(60_000)}, 2001:db8::abcd:${1000 + i}`).toString('latin1');
    return accepted(sampleHead({ fields: ['X-Forwarded-For', list] }), trusting).clientAddress;
  });
  collect();
  // The fields together have 30 MB.
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(5_000_000);
  expect(kept[7]).toBe('2001:db8::abcd:1007');
});
