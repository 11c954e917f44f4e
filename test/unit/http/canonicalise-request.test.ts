import { describe, expect, it } from 'vitest';
import { accepted, canonicaliseSample, sampleHead } from './sample-request.ts';

describe('canonicaliseRequest', () => {
  it('gives each member of the request', () => {
    const sent = ['Content-Type', 'application/vnd.api+json', 'Authorization', 'Bearer x'];
    const fields = ['Content-Length', '5', ...sent];
    const head = sampleHead({ method: 'PATCH', url: '//carts/%41?a=%zz&', fields });
    expect(canonicaliseSample(head)).toEqual({
      method: 'PATCH',
      path: '/carts/A',
      query: '?a=%zz&',
      segments: ['carts', 'A'],
      alternativeSegments: undefined,
      fields: [
        ...['Host', 'upstream.internal:9000'],
        ...sent,
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

  it.each([
    ['POST', undefined, true],
    ['POST', '', true],
    ['POST', 'application/x-www-form-urlencoded', true],
    ['POST', 'Application/X-WWW-Form-URLencoded; charset=utf-8', true],
    ['POST', 'application/x-www-form-urlencoded, application/json', true],
    ['POST', 'multipart/form-data; boundary=x', true],
    ['POST', 'application/json', false],
    ['POST', 'application/x-www-form-urlencoded x', true],
    ['POST', 'MULTIPART/mixed', true],
    ['POST', ';', true],
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
});
