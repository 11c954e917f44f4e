import { expect, it } from 'vitest';
import type { ForwardOutcome } from '../../../src/upstream/hooks.ts';
import { frontSuite } from '../../harness/forwarding-front.ts';
import { exchangeRaw } from '../../harness/raw-client.ts';
import { answer } from '../../harness/recording-upstream.ts';

const get = 'GET / HTTP/1.1\r\nHost: s\r\n\r\n';

/** F3, F11, H17: a request that cannot be written is refused before its first byte, and does not crash the process. */
frontSuite('F11: requests that cannot be written', (start) => {
  it.each([
    ['CR LF in a value', { fields: ['Host', 's', 'X-User', 'a\r\nX-Admin: 1'] }],
    ['LF in a value', { fields: ['Host', 's', 'X-User', 'a\nX-Admin: 1'] }],
    ['NUL in a value', { fields: ['Host', 's', 'X-User', 'a\0'] }],
    ['a value outside latin-1', { fields: ['Host', 's', 'X-User', '\u{1f600}'] }],
    ['CR LF in a name', { fields: ['Host', 's', 'X-User: a\r\nX-Admin', '1'] }],
    ['a space in a name', { fields: ['Host', 's', 'X User', '1'] }],
    ['an empty name', { fields: ['Host', 's', '', '1'] }],
    ['CR LF in the target', { path: '/a HTTP/1.1\r\nX-Admin: 1\r\n\r\nGET /b' }],
    ['a space in the target', { path: '/a b' }],
    ['a method with a space', { method: 'GET /x' as 'GET' }],
  ])('500 for %s, and nothing is sent', async (_what, change) => {
    const outcomes: ForwardOutcome[] = [];
    const { port, upstream, front } = await start(() => answer(), {
      edit: (request) => (outcomes.length === 0 ? { ...request, ...change } : request),
      hooks: () => ({
        bufferLimit: 100,
        onOutcome: (outcome) => {
          outcomes.push(outcome);
          return {};
        },
      }),
    });
    const response = await exchangeRaw(port, get);
    expect([response.status, response.field('content-type')]).toEqual([500, 'application/vnd.api+json']);
    expect(upstream.bytes()).toBe('');
    expect(outcomes).toEqual([{ kind: 'unsent', fault: 'not-sent' }]);
    expect(front.forwarder.inFlight).toBe(0);
    expect((await exchangeRaw(port, get)).status).toBe(200);
  });

  it.each([
    'http://',
    'http://[::1',
    'http://a:99999/x',
    'http://%/x',
    'HTTP://[/',
    'http://a%00b/',
    '//[::1',
    '*',
    'x',
  ])('F3: the target %j is forwarded', async (target) => {
    const { port, upstream } = await start(() => answer(), {
      edit: (request) => ({ ...request, path: target }),
    });
    const { status } = await exchangeRaw(port, get);
    expect(status).toBe(200);
    expect(upstream.requestLines).toEqual([`GET ${target} HTTP/1.1`]);
  });
});
