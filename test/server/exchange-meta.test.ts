import { describe, expect, it } from 'vitest';
import { codeOf, readMalformedRequest, toExchangeRecord } from '../../src/server/exchange-meta.ts';

const sixteen = Array.from({ length: 16 }, (_, i) => `${i}`);

describe('of a request that was not understood', () => {
  it.each<[string | undefined, readonly string[]]>([
    ['/carts/1', ['carts', '1']],
    ['/', ['']],
    ['/carts/', ['carts', '']],
    ['/carts?token=secret', ['carts']],
    ['/a~b/c.d_e-f', ['a~b', 'c.d_e-f']],
    // An escape may spell the name of what has a secret next to it.
    ['/%72efresh-tokens/secret', ['…']],
    ['/carts/a%20b/secret', ['carts', '…']],
    ['/carts/a;b', ['carts', '…']],
    ['/carts/a#b', ['carts', '…']],
    [`/${sixteen.join('/')}`, sixteen],
    [`/${sixteen.join('/')}/17th`, [...sixteen, '…']],
    [`/${'a'.repeat(4_100)}`, ['a'.repeat(4_095)]],
    ['http://shop.example/carts', []],
    ['*', []],
    ['', []],
    [undefined, []],
  ])('%j is logged as %j', (target, segments) => {
    expect(readMalformedRequest('GET', target)).toMatchObject({ method: 'GET', segments });
  });

  it.each([
    ['PATCH', 'PATCH'],
    ['patch', 'other'],
    ['BREW', 'other'],
    [undefined, 'other'],
  ])('the method %j is logged as %j', (method, logged) => {
    expect(readMalformedRequest(method, '/').method).toBe(logged);
  });

  it('each has an id of its own', () => {
    const [a, b] = [readMalformedRequest(), readMalformedRequest()];
    expect(a.requestId).not.toBe(b.requestId);
  });
});

describe('the record of a request', () => {
  const malformed = { requestId: 'ours', method: 'other', segments: ['x'] } as const;
  const meta = {
    ...{ request: undefined, malformed, route: '*', observed: undefined },
    ...{ startedMs: performance.now() - 1_000, peerAddress: '192.0.2.1' },
  };
  const redact = (segments: readonly string[]) => `/${segments.join('/')}`;
  const refusal = { rejection: 'bad-request', reason: 'target' } as const;
  const observed = { rejection: 'overloaded', reason: 'client-share' } as const;

  it('that was not understood says what is known of it, and where it came from', () => {
    const record = toExchangeRecord(meta, { decision: 'refused', status: 400, rejection: refusal }, redact);
    expect(record).toMatchObject({
      ...{ requestId: 'ours', method: 'other', path: '/x', clientAddress: '192.0.2.1', route: '*' },
      ...{ decision: 'refused', status: 400, rejection: 'bad-request', reason: 'target' },
    });
    expect(record.observed).toBeUndefined();
    expect(record.durationMs).toBeGreaterThanOrEqual(1_000);
    expect(record.durationMs).toBeLessThan(1_000_000);
  });

  it('that was understood says what it was, and what observe mode noted', () => {
    const request = {
      ...{ requestId: 'theirs', method: 'GET', segments: ['carts'], clientAddress: '198.51.100.1' },
    } as never;
    const noted = { ...meta, request, observed };
    const outcome = { decision: 'forwarded', status: 200, upstreamMs: 5, fault: 'ECONNRESET' } as const;
    expect(toExchangeRecord(noted, outcome, redact)).toMatchObject({
      ...{ requestId: 'theirs', method: 'GET', path: '/carts', clientAddress: '198.51.100.1' },
      ...{ observed: 'overloaded', reason: 'client-share', upstreamMs: 5, fault: 'ECONNRESET' },
    });
    const both = toExchangeRecord(noted, { ...outcome, rejection: refusal }, redact);
    expect([both.rejection, both.reason, both.observed]).toEqual(['bad-request', 'target', 'overloaded']);
  });
});

it.each([
  [Object.assign(new Error(), { code: 'ECONNRESET' }), 'ECONNRESET'],
  [Object.assign(new Error(), { code: 20 }), undefined],
  [new Error('secret'), undefined],
  ['text', undefined],
  [undefined, undefined],
  [null, undefined],
])('of the fault %s the log has a code word, or nothing', (fault, code) => {
  expect(codeOf(fault)).toBe(code);
});
