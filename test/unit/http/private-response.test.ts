import { expect, it } from 'vitest';
import { toPrivate } from '../../../src/server/own-fields.ts';

it.each([
  ['', 'private'],
  ['public', 'private'],
  ['public, max-age=60, s-maxage=600', 'private, max-age=60'],
  ['Public , S-MaxAge = 600,no-cache', 'private, no-cache'],
  ['private', 'private'],
  ['no-store', 'private, no-store'],
  ['private="set-cookie", max-age=60', 'private, no-store'],
  ['max-age=60, stale-while-revalidate=600, stale-if-error=5, immutable', 'private, max-age=60, immutable'],
  ['publicity=1', 'private, publicity=1'],
])('Cache-Control %j becomes %j', (sent, expected) => {
  expect(toPrivate(['A', 'b', 'cache-control', sent], true)).toEqual([
    'A',
    'b',
    'Cache-Control',
    expected,
    'Vary',
    'Cookie',
  ]);
});

it('merges Cache-Control lines, and drops the fields for CDNs', () => {
  const sent = ['Cache-Control', 'public', 'cache-control', 'max-age=1', 'CDN-Cache-Control', 'max-age=9'];
  const more = [
    'Surrogate-Control',
    'max-age=9',
    'X-Accel-Expires',
    '9',
    'Cloudflare-CDN-Cache-Control',
    'x',
  ];
  expect(toPrivate([...sent, ...more, 'Vary', 'Accept, COOKIE'], true)).toEqual([
    'Cache-Control',
    'private, max-age=1',
    'Vary',
    'Accept, COOKIE',
  ]);
  expect(toPrivate(['Vary', '*'], true)).toEqual(['Cache-Control', 'private', 'Vary', '*']);
  expect(toPrivate(['Vary', 'A', 'vary', 'B'], true)).toEqual([
    'Cache-Control',
    'private',
    'Vary',
    'A, B, Cookie',
  ]);
  expect(toPrivate(['Vary', 'A', 'vary', 'B'], false)).toEqual([
    'Vary',
    'A',
    'vary',
    'B',
    'Cache-Control',
    'private',
  ]);
});
