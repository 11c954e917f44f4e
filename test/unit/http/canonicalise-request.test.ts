import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { methods } from '../../../src/http/canonical-request.ts';
import { isRejection } from '../../../src/http/rejection.ts';
import { anyPath, anyText } from '../../harness/any-text.ts';
import { refusalOf } from './request-facts.ts';
import { accepted, canonicaliseSample, sampleHead } from './sample-request.ts';

describe('canonicaliseRequest', () => {
  it('gives each member of the request', () => {
    const fields = [
      'Content-Type',
      'application/vnd.api+json',
      'Content-Length',
      '5',
      'Authorization',
      'Bearer x',
    ];
    const head = sampleHead({ method: 'PATCH', url: '//carts/%41?a=%zz&', fields });
    expect(canonicaliseSample(head)).toEqual({
      method: 'PATCH',
      path: '/carts/A',
      query: '?a=%zz&',
      segments: ['carts', 'A'],
      alternativeSegments: undefined,
      fields: [
        ...['Host', 'upstream.internal:9000'],
        ...['Content-Type', 'application/vnd.api+json', 'Authorization', 'Bearer x'],
        ...['X-Forwarded-For', '192.0.2.1', 'X-Forwarded-Proto', 'http'],
        ...['X-Forwarded-Host', 'shop.example', 'X-Request-Id', 'generated-id'],
      ],
      host: 'shop.example',
      scheme: 'http',
      clientAddress: '192.0.2.1',
      requestId: 'generated-id',
      isFormPost: false,
      body: { length: 5 },
      expectsContinue: false,
      isWebSocketUpgrade: false,
    });
  });

  it.each(methods)('accepts the method %s', (method) => {
    expect(accepted(sampleHead({ method })).method).toBe(method);
  });

  it.each(['SEARCH', 'QUERY', 'PROPFIND', 'REPORT'] as const)('accepts %s if it is configured', (method) => {
    expect(refusalOf({ method })).toBe('method-not-allowed');
    expect(accepted(sampleHead({ method }), { extensionMethods: [method] }).method).toBe(method);
  });

  it('refuses a method override in the query of a POST only', () => {
    for (const method of methods) {
      const rejection = method === 'POST' ? 'method-override' : undefined;
      expect(refusalOf({ method, url: '/carts/1?%5fmethod=DELETE' })).toBe(rejection);
    }
  });

  it.each([
    ['POST', undefined, true],
    ['POST', '', true],
    ['POST', 'application/x-www-form-urlencoded', true],
    ['POST', 'Application/X-WWW-Form-URLencoded; charset=utf-8', true],
    ['POST', 'application/x-www-form-urlencoded, application/json', true],
    ['POST', 'application/x-www-form-urlencoded x', true],
    ['POST', 'multipart/form-data; boundary=x', true],
    ['POST', 'MULTIPART/mixed', true],
    ['POST', ';', true],
    ['POST', 'application/json', false],
    ['POST', 'application/vnd.api+json', false],
    ['POST', 'text/plain', false],
    ['POST', 'application/json; x=multipart/form-data', false],
    ['PUT', undefined, false],
    ['PATCH', 'application/x-www-form-urlencoded', false],
    ['GET', undefined, false],
  ])('%s with the type %j: form POST %s', (method, type, isFormPost) => {
    const fields = type === undefined ? [] : ['Content-Type', type];
    expect(accepted(sampleHead({ method, fields })).isFormPost).toBe(isFormPost);
  });

  it.each<[string, Parameters<typeof sampleHead>[0], boolean, boolean]>([
    ['switched on', {}, true, true],
    ['switched off', {}, false, false],
    ['POST', { method: 'POST' }, true, false],
    ['HTTP/1.0', { httpVersionMinor: 0 }, true, false],
  ])('WebSocket handshake: %s', (_name, more, webSocket, isUpgrade) => {
    const fields = ['Connection', 'keep-alive, Upgrade', 'Upgrade', 'WebSocket', 'Sec-WebSocket-Key', 'k'];
    const request = accepted(sampleHead({ fields, ...more }), { webSocket });
    expect(request.isWebSocketUpgrade).toBe(isUpgrade);
    expect(request.fields.includes('Sec-WebSocket-Key')).toBe(isUpgrade);
    expect(request.fields).not.toContain('Upgrade');
  });

  it('never throws, whatever the head', () => {
    const name = fc.oneof(
      fc.constantFrom(
        'Host',
        'Connection',
        'Content-Length',
        'Transfer-Encoding',
        'Expect',
        'X-Forwarded-For',
      ),
      fc.constantFrom(
        'Content-Type',
        'X-Request-Id',
        'X-Forwarded-Proto',
        'Upgrade',
        'Authorization',
        '__proto__',
      ),
      anyText(),
    );
    const value = fc.oneof(
      fc.constantFrom('shop.example', 'chunked', 'close, host', '100-continue', '10.0.0.1, 1.1.1.1'),
      anyText(),
    );
    const head = fc.record({
      method: fc.option(fc.oneof(fc.constantFrom(...methods), fc.string()), { nil: undefined }),
      url: fc.option(fc.oneof(anyPath(), anyText()), { nil: undefined }),
      rawHeaders: fc.array(fc.tuple(name, value)).map((lines) => ['Host', 'shop.example', ...lines.flat()]),
      httpVersionMajor: fc.constantFrom(0, 1, 1, 1, 2),
      httpVersionMinor: fc.constantFrom(0, 1, 1, 1, 9),
    });
    const remoteAddress = fc.oneof(fc.constantFrom('10.0.0.1', '192.0.2.1', ''), fc.string());
    fc.assert(
      fc.property(head, remoteAddress, (sent, address) => {
        const result = canonicaliseSample(sent, { remoteAddress: address, trustedProxies: ['10.0.0.0/8'] });
        if (isRejection(result)) return;
        assert.equal(result.fields.length % 2, 0);
        for (let i = 0; i < result.fields.length; i += 2) {
          assert.match(result.fields[i] ?? '', /^[A-Za-z0-9-]+$/);
        }
      }),
      { numRuns: 4_000 },
    );
  });
});
