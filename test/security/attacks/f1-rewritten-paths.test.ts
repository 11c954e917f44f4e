import { expect, it } from 'vitest';
import { frontSuite } from '../../harness/forwarding-front.ts';
import { exchangeRaw } from '../../harness/raw-client.ts';
import { answer } from '../../harness/recording-upstream.ts';

/** F1, F2: a target must not be rewritten after the decision, as WHATWG `URL` would do. */
frontSuite('F1: targets that a URL parser rewrites', (start) => {
  it.each([
    '/a/../orders',
    '/a/%2e%2e/orders',
    '/a/.%2e/orders',
    '/a\\..\\orders',
    '/\\orders',
    '/orders#frag',
    '/orders#/../x?y',
    '/orders/.',
    '/orders/%2e',
    '/orders?',
    '/a"b',
    '/a{b}',
    '/a<b>',
    '/a`b`',
    '/a^b',
    "/?q='",
    '//../orders',
    '//x/../orders',
    '//orders',
    '///orders',
    '//[::1',
    '//user:pass@evil.test:99/orders',
    '/a/..%2forders',
    '/%252e',
    '/..;/',
    '/%00%0a%zz',
    '/caf\xe9',
  ])('the target %j is forwarded unchanged', async (target) => {
    const { port, upstream } = await start(() => answer(), {
      edit: (request) => ({ ...request, path: target, query: '' }),
    });
    expect((await exchangeRaw(port, 'GET / HTTP/1.1\r\nHost: s\r\n\r\n')).status).toBe(200);
    expect(upstream.requestLines).toEqual([`GET ${target} HTTP/1.1`]);
    expect(upstream.bytes()).toMatch(/\r\nhost: s\r\n/i);
  });
});
