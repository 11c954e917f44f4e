import { describe, expect, test } from 'vitest';
import { parseRedisUrl } from '../../../src/redis/redis-url.ts';

const single = { kind: 'single', tls: false, db: 0 };
const one = [{ host: 'h1', port: 6379 }];
const shopOfSentinel = {
  ...{ kind: 'sentinel', tls: true, db: 2, password: 's', primaryName: 'shop' },
  hosts: ['h1:26380', 'h2:26379'].map((each) => ({ host: each.slice(0, 2), port: Number(each.slice(3)) })),
};

describe('parseRedisUrl', () => {
  test.each([
    ['redis://h1', { ...single, hosts: one }],
    ['redis://h1:1', { ...single, hosts: [{ host: 'h1', port: 1 }] }],
    ['redis://h1:65535/', { ...single, hosts: [{ host: 'h1', port: 65_535 }] }],
    ['redis+cluster://h1/0', { ...single, kind: 'cluster', hosts: one }],
    ['redis://:@h1', { ...single, hosts: one }],
    ['redis://user@h1', { ...single, hosts: one, username: 'user' }],
    ['redis://h1:7000/3', { ...single, hosts: [{ host: 'h1', port: 7000 }], db: 3 }],
    ['rediss://h1', { ...single, tls: true, hosts: one }],
    ['redis://:pa%40ss@h1', { ...single, hosts: one, password: 'pa@ss' }],
    ['redis://user:p@ss@h1', { ...single, hosts: one, username: 'user', password: 'p@ss' }],
    ['redis://[::1]:7000', { ...single, hosts: [{ host: '::1', port: 7000 }] }],
    [
      'redis+cluster://h1,h2:7001',
      { ...single, kind: 'cluster', hosts: [...one, { host: 'h2', port: 7001 }] },
    ],
    ['rediss+sentinel://:s@h1:26380,h2/shop/2', shopOfSentinel],
  ])('%s', (url, address) => {
    expect(parseRedisUrl(url)).toEqual(address);
  });

  const refused =
    'http://h1 redis:/h1 redis:// redis://h1,h2 redis://h1:0 redis://h1:65536 redis://h1/x redis://h1/1/2 ' +
    'redis+cluster://h1/1 redis+sentinel://h1 redis+other://h1/x redis://:%zz@h1';
  test.each(refused.split(' '))('refuses %s', (url) => {
    expect(() => parseRedisUrl(url)).toThrow(/^store\.url/);
  });

  test('errors do not contain the password', () => {
    const wrong = 'redis://u:sesame@h1:0 redis://u:sesame@ xx://u:sesame@h1 redis://u:sesame%@h1';
    for (const url of wrong.split(' ')) {
      expect(() => parseRedisUrl(url)).toThrow(
        expect.objectContaining({ message: expect.not.stringContaining('sesame') }),
      );
    }
  });
});
