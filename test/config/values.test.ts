import { describe, expect, it } from 'vitest';
import {
  cidr,
  distinct,
  duration,
  isLinkLocal,
  isLoopback,
  listenHost,
  parseDuration,
  parseOrigin,
  parseSize,
  parseUpstreamUrl,
  path,
  pathTemplate,
  pathTemplateOrBelow,
  port,
  size,
  text,
} from '../../src/config/values.ts';
import { nearestName } from '../../src/lib/nearest-name.ts';

it.each([
  ['250ms', 250],
  ['30s', 30_000],
  ['1.5s', 1500],
  ['5m', 300_000],
  ['8h', 28_800_000],
  ['30d', 2_592_000_000],
  ['2628000s', 2_628_000_000],
  ['0s', 0],
  ['', undefined],
  ['30', undefined],
  ['-1s', undefined],
  ['1 s', undefined],
  ['1S', undefined],
  ['1w', undefined],
  ['1e3s', undefined],
  ['s', undefined],
])('duration %j', (text, ms) => expect(parseDuration(text)).toBe(ms));

it.each([
  ['65536', 65_536],
  ['10B', 10],
  ['64KiB', 65_536],
  ['2MiB', 2_097_152],
  ['1GiB', 1_073_741_824],
  ['1KB', undefined],
  ['1.5MiB', undefined],
  ['-1', undefined],
  ['999999999999999GiB', undefined],
])('size %j', (text, bytes) => expect(parseSize(text)).toBe(bytes));

describe('origin', () => {
  it.each([
    ['http://shop', 'http://shop', 'shop', 80],
    ['HTTPS://Shop.Example:443/', 'https://shop.example', 'shop.example', 443],
    ['http://10.0.0.1:9000', 'http://10.0.0.1:9000', '10.0.0.1', 9000],
    ['http://[::1]:80', 'http://[::1]', '::1', 80],
    ['http://glue_de:81', 'http://glue_de:81', 'glue_de', 81],
  ])('%s', (text, origin, hostname, port) => {
    expect(parseOrigin(text)).toMatchObject({ origin, hostname, port });
  });

  it.each([
    'shop',
    '//shop',
    'ftp://shop',
    'http://',
    'http://shop/api',
    'http://shop//',
    'http://shop?',
    'http://shop#',
    'http://u@shop',
    'http://shop:65536',
    'http://shop:x',
    'http://sh op',
    'http://shop\n',
    'http://-shop',
    'http://shop\\@evil',
  ])('not %j', (text) => expect(parseOrigin(text)).toBeUndefined());
});

it.each([
  ['127.0.0.1', true],
  ['127.9.9.9', true],
  ['LOCALHOST', true],
  ['::1', true],
  ['0.0.0.0', false],
  ['::', false],
  ['127.0.0.1.evil', false],
  ['localhost.evil', false],
])('loopback %s: %s', (host, is) => expect(isLoopback(host)).toBe(is));

it.each([
  ['prot', ['port', 'host'], 'port'],
  ['TTL', ['ttl'], 'ttl'],
  ['keepAliveTimout', ['keepAliveTimeout', 'host'], 'keepAliveTimeout'],
  ['quux', ['port'], undefined],
  ['', ['a'], 'a'],
])('the name nearest to %j', (typed, names, near) => expect(nearestName(typed, names)).toBe(near));

it.each([
  ['169.254.169.254', true],
  ['fe80::1', true],
  ['FEBF::1', true],
  ['metadata.google.internal', true],
  ['169.25.4.1', false],
  ['fec0::1', false],
  ['metadata.google.internal.example', false],
])('link-local %s: %s', (host, is) => expect(isLinkLocal(host)).toBe(is));

it.each([
  ['http://shop', ''],
  ['http://shop/', ''],
  ['https://shop:8443/api/v2', '/api/v2'],
  ['http://shop/api/', '/api'],
  ['http://shop/a.b/..c', '/a.b/..c'],
  ['http://shop/api//', undefined],
  ['http://shop//api', undefined],
  ['http://shop/a/../b', undefined],
  ['http://shop/..', undefined],
  ['http://shop/./a', undefined],
  ['http://shop/...', undefined],
  ['http://shop/a%2fb', undefined],
  ['http://shop/a;b', undefined],
  ['http://shop/a?b', undefined],
  ['ftp://shop/a', undefined],
  ['http://sh op/a', undefined],
])('the path of the upstream %s: %j', (url, found) => expect(parseUpstreamUrl(url)?.path).toBe(found));

it('an upstream below a path has the origin of its host', () => {
  expect(parseUpstreamUrl('HTTP://Shop:81/api')).toEqual({
    ...{ scheme: 'http', hostname: 'shop', port: 81, origin: 'http://shop:81', path: '/api' },
  });
});

/** What each kind of setting takes, and what it makes of it; undefined: it is refused. */
const kinds = {
  text: text(),
  port: port(),
  listenHost: listenHost(),
  cidr: cidr(),
  path: path(),
  pathTemplate: pathTemplate(),
  pathTemplateOrBelow: pathTemplateOrBelow(),
  duration: duration(),
  'duration 1s to 1m': duration({ from: '1s', to: '1m' }),
  size: size(),
  'size 10 to 20': size({ from: 10, to: 20 }),
  distinct: distinct(text()),
};

it.each<[keyof typeof kinds, unknown, unknown]>([
  ['text', 'a', 'a'],
  ['text', '', undefined],
  ['text', 'a\nb', undefined],
  ['text', 'a\u007f', undefined],
  ['port', 0, 0],
  ['port', 65_535, 65_535],
  ['port', 65_536, undefined],
  ['port', -1, undefined],
  ['port', 1.5, undefined],
  ['listenHost', '::', '::'],
  ['listenHost', 'a', 'a'],
  ['listenHost', 'shop-1.example', 'shop-1.example'],
  ['listenHost', '-shop', undefined],
  ['listenHost', 'shop:80', undefined],
  ['cidr', '10.0.0.0/32', '10.0.0.0/32'],
  ['cidr', '10.0.0.0/33', undefined],
  ['cidr', '10.0.0.0/0', '10.0.0.0/0'],
  ['cidr', '::1/128', '::1/128'],
  ['cidr', '::1/129', undefined],
  ['cidr', '10.0.0.0/', undefined],
  ['cidr', '10.0.0.0/8/8', undefined],
  ['cidr', 'fe80::1%eth0', undefined],
  ['cidr', 'shop', undefined],
  ['path', '/a/b', '/a/b'],
  ['path', '/', undefined],
  ['path', '/a/', undefined],
  ['path', '/a/{id}', undefined],
  ['path', '/a?b', undefined],
  ['pathTemplate', '/a/{id}', '/a/{id}'],
  ['pathTemplate', '/', undefined],
  ['pathTemplate', '/a/**', undefined],
  ['pathTemplate', 'a', undefined],
  ['pathTemplateOrBelow', '/a/**', '/a/**'],
  ['pathTemplateOrBelow', '/**', '/**'],
  ['pathTemplateOrBelow', '/', undefined],
  ['duration', '1ms', 1],
  ['duration', '0.4ms', undefined],
  ['duration', '24d', 2_073_600_000],
  ['duration', '24.001d', undefined],
  ['duration 1s to 1m', '999ms', undefined],
  ['duration 1s to 1m', '1s', 1_000],
  ['duration 1s to 1m', '60s', 60_000],
  ['duration 1s to 1m', '60001ms', undefined],
  ['duration 1s to 1m', 'soon', undefined],
  ['size', 1, 1],
  ['size', 0, undefined],
  ['size', 'much', undefined],
  ['size 10 to 20', 9, undefined],
  ['size 10 to 20', '10B', 10],
  ['size 10 to 20', 20, 20],
  ['size 10 to 20', '21B', undefined],
  ['distinct', ['a', 'b'], ['a', 'b']],
  ['distinct', ['a', 'b', 'a'], undefined],
])('a setting of kind %s: %j is %j', (kind, given, taken) => {
  expect(kinds[kind].safeParse(given).data).toEqual(taken);
});
