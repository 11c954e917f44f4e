import { describe, expect, it } from 'vitest';
import type { CanonicalRequest, Method } from '../../../src/http/canonical-request.ts';
import { refusalOf } from './request-facts.ts';
import { accepted, sampleHead } from './sample-request.ts';

const chunked = ['Transfer-Encoding', 'chunked'];

describe('framing', () => {
  const bodies: [Method, string[], CanonicalRequest['body']][] = [
    ['POST', [], 'none'],
    ['POST', ['Content-Length', '0'], { length: 0 }],
    ['POST', ['Content-Length', '1000'], { length: 1000 }],
    ['POST', ['Content-Length', '0012'], { length: 12 }],
    ['POST', chunked, 'chunked'],
    ['POST', ['transfer-encoding', 'Chunked'], 'chunked'],
    ['DELETE', chunked, 'chunked'],
    ['DELETE', ['Content-Length', '5'], { length: 5 }],
    ['OPTIONS', chunked, 'chunked'],
    ['GET', ['Content-Length', '0'], 'none'],
    ['HEAD', ['Content-Length', '000'], 'none'],
  ];

  it.each(bodies)('%s with %j has the body %j', (method, fields, body) => {
    const request = accepted(sampleHead({ method, fields }));
    expect(request.body).toEqual(body);
    expect(request.fields.join()).not.toMatch(/content-length|transfer-encoding/i);
  });

  it.each([
    ['both', ['Content-Length', '5', ...chunked], 'bad-request-fields'],
    ['both, in the other order', [...chunked, 'Content-Length', '5'], 'bad-request-fields'],
    ['gzip, chunked', ['Transfer-Encoding', 'gzip, chunked'], 'transfer-encoding-unsupported'],
    ['chunked, identity', ['Transfer-Encoding', 'chunked, identity'], 'transfer-encoding-unsupported'],
    ['chunked twice', ['Transfer-Encoding', 'chunked, chunked'], 'transfer-encoding-unsupported'],
    ['xchunked', ['Transfer-Encoding', 'xchunked'], 'transfer-encoding-unsupported'],
    ['identity', ['Transfer-Encoding', 'identity'], 'transfer-encoding-unsupported'],
    ['nothing', ['Transfer-Encoding', ''], 'transfer-encoding-unsupported'],
    ['VT before chunked', ['Transfer-Encoding', '\u000bchunked'], 'transfer-encoding-unsupported'],
    ['a parameter', ['Transfer-Encoding', 'chunked;x=1'], 'transfer-encoding-unsupported'],
    ['+1', ['Content-Length', '+1'], 'bad-request-fields'],
    ['-1', ['Content-Length', '-1'], 'bad-request-fields'],
    ['1, 1', ['Content-Length', '1, 1'], 'bad-request-fields'],
    ['1.0', ['Content-Length', '1.0'], 'bad-request-fields'],
    ['0x5', ['Content-Length', '0x5'], 'bad-request-fields'],
    ['1e2', ['Content-Length', '1e2'], 'bad-request-fields'],
    ['no length', ['Content-Length', ''], 'bad-request-fields'],
    ['a length over the limit', ['Content-Length', '1001'], 'payload-too-large'],
    ['an overflow', ['Content-Length', '9'.repeat(400)], 'payload-too-large'],
  ])('refuses %s on every method', (_name, fields, rejection) => {
    for (const method of ['POST', 'PATCH', 'DELETE', 'OPTIONS', 'GET', 'HEAD']) {
      expect(refusalOf({ method, fields })).toBe(rejection);
    }
  });

  it.each([['Content-Length', '5'], chunked, ['Expect', '100-continue', ...chunked]])(
    'refuses a body of GET and HEAD with %s',
    (...fields) => {
      for (const method of ['GET', 'HEAD']) expect(refusalOf({ method, fields })).toBe('unexpected-body');
    },
  );

  it('refuses any Transfer-Encoding in HTTP/1.0', () => {
    for (const value of ['chunked', 'gzip']) {
      const fields = ['Transfer-Encoding', value];
      expect(refusalOf({ method: 'POST', httpVersionMinor: 0, fields })).toBe('bad-request-fields');
    }
  });
});

describe('Expect', () => {
  const expectation = ['Expect', '100-continue'];
  const length = ['Content-Length', '5'];

  it.each<[string, Parameters<typeof sampleHead>[0], boolean]>([
    ['POST with a body', { method: 'POST', fields: [...expectation, ...chunked] }, true],
    ['any case', { method: 'POST', fields: ['expect', '100-Continue', ...length] }, true],
    ['POST without a body', { method: 'POST', fields: expectation }, false],
    ['HTTP/1.0', { ...{ method: 'POST', httpVersionMinor: 0 }, fields: [...expectation, ...length] }, false],
    ['no Expect', { method: 'POST', fields: chunked }, false],
  ])('100-continue: %s', (_name, head, expectsContinue) => {
    const request = accepted(sampleHead(head));
    expect(request.expectsContinue).toBe(expectsContinue);
    expect(request.fields.join()).not.toMatch(/expect/i);
  });

  it.each(['', '200-ok', '100-continue, x', '100-continuex', ' 100-continue;q=1'])('refuses %j', (value) => {
    expect(refusalOf({ method: 'POST', fields: ['Expect', value, ...chunked] })).toBe('expectation-failed');
  });
});
