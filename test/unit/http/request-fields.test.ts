import { describe, expect, it } from 'vitest';
import { fieldNames } from './request-facts.ts';
import { accepted, canonicaliseSample, sampleHead } from './sample-request.ts';

const ours = ['X-Forwarded-For', 'X-Forwarded-Proto', 'X-Forwarded-Host', 'X-Request-Id'];

/** Names of the forwarded fields, without Host and those that the proxy adds. */
function forwarded(fields: readonly string[], method = 'GET'): string[] {
  const names = fieldNames(accepted(sampleHead({ method, fields })).fields);
  expect(names.at(0)).toBe('Host');
  expect(names.slice(-ours.length)).toEqual(ours);
  return names.slice(1, -ours.length);
}

describe('request fields', () => {
  it('keeps order, spelling, repetition and octets', () => {
    const repeated = ['X-One', '1', 'Cookie', 'a=1', 'cookie', 'b=2', 'X-One', ' \xe9\t2'];
    const fields = ['accept', 'a', ...repeated, 'STORE', ''];
    const request = accepted(sampleHead({ rawHeaders: ['hOST', 'Shop.Example', ...fields] }));
    expect(request.fields).toEqual([
      ...['Host', 'upstream.internal:9000', ...fields],
      ...['X-Forwarded-For', '192.0.2.1', 'X-Forwarded-Proto', 'http'],
      ...['X-Forwarded-Host', 'shop.example', 'X-Request-Id', 'generated-id'],
    ]);
  });

  it.each([
    ...'Authorization If-Match If-None-Match Store X-Anonymous-Customer-Unique-Id Range Via'.split(' '),
    ...'X-Agent-Authorization X-MFA-Code traceparent X-HTTP-Methods Max-Forwards'.split(' '),
    ...['Content-Type', 'Content-Encoding'],
  ])('passes %s', (name) => {
    expect(forwarded([name, '1'])).toEqual([name]);
  });

  it.each([
    'Host',
    ...'Authorization Content-Type Content-Length Transfer-Encoding Expect'.split(' '),
    ...['If-Modified-Since', 'If-Unmodified-Since'],
  ])('refuses two %s fields, in any spelling', (name) => {
    const reason = name === 'Host' ? 'repeated' : `repeated-${name.toLowerCase()}`;
    const rejection = name === 'Host' ? 'bad-host' : 'bad-request-fields';
    const rawHeaders = name === 'Host' ? [] : ['Host', 'shop.example'];
    for (const second of [name, name.toLowerCase(), name.toUpperCase()]) {
      const head = sampleHead({ rawHeaders: [...rawHeaders, name, '1', 'A', 'b', second, '1'] });
      expect(canonicaliseSample(head)).toEqual({ rejection, reason });
    }
  });
});

describe('Connection', () => {
  it.each(['', ',', 'close', 'keep-alive', 'Keep-Alive', 'close, TE', 'upgrade', '@@', 'a b'])(
    '%j removes no other field',
    (value) => {
      expect(forwarded(['Connection', value, 'A', '1'])).toEqual(['A']);
    },
  );

  it('400,000 nominations with 250 fields are handled in linear time', () => {
    // With a quadratic cost this would hang.
    const fields = Array.from({ length: 250 }, (_, i) => [`x${i}`, '1']).flat();
    const nominations = Array.from({ length: 400_000 }, (_, i) => `y${i}`).join();
    expect(forwarded(['Connection', nominations, ...fields])).toHaveLength(250);
  });
});
