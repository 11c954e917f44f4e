import { describe, expect, it } from 'vitest';
import { isLoopback, parseDuration, parseOrigin, parseSize } from '../../src/config/values.ts';
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
