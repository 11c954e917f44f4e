import { describe, expect, it } from 'vitest';
import { request, useAttackStage } from '../../harness/attack-stage.ts';

const stage = useAttackStage();

/** P2: rows match paths, so a target in absolute-form could match none of them. RFC 9112 section 3.2.2. */
describe('P2: absolute-form', () => {
  it.each([
    ...['http://evil.example/orders', 'HTTP://evil.example/orders', 'http://evil.example:99/a/../orders?x'],
    ...[
      'http://shop.example:80/orders',
      'http://shop.example./orders',
      'http://shop.example@evil.example/orders',
    ],
    ...[
      'https://u:p@shop.example/orders',
      'http://@shop.example/orders',
      'http://shop.example\\@evil/orders',
    ],
    ...['ftp://shop.example/orders', 'file:///orders', 'http:///orders', 'ws://shop.example/orders'],
    ...['http://evil.example?x', 'http://evil.example#x', 'http://shop.example#x', 'http://evil.example'],
    // F3: these pass node's parser and make `new URL` throw.
    ...[
      'http://',
      'http://[::1',
      'http://a:99999/x',
      'http://%/x',
      'HTTP://[/',
      'http://a%00b/',
      'http://[/orders',
    ],
    // These are not valid request targets.
    ...[
      'http:orders',
      'http:/orders',
      'orders',
      'javascript:alert(1)',
      '://x/orders',
      '?x',
      'shop.example:80',
    ],
  ])('400 for %s', async (target) => {
    await stage.refuses(request(`GET ${target}`), 400, 'bad-request-target');
  });

  it.each(['http://shop.example/orders', 'HTTPS://SHOP.example/orders?x', 'http://shop.example//orders'])(
    '401 for %s: rows match the path after the authority',
    async (target) => {
      await stage.demandsToken(request(`GET ${target}`));
    },
  );

  it.each([
    ['http://shop.example/stores?x=/orders', '/stores?x=/orders'],
    ['http://shop.example', '/'],
    ['http://shop.example?x', '/?x'],
  ])('%s is forwarded as %s', async (target, forwarded) => {
    expect((await stage.passes(request(`GET ${target}`))).requestLine).toBe(`GET ${forwarded} HTTP/1.1`);
  });
});
