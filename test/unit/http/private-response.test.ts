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
  const fields = ['A', 'b', 'Cache-Control', expected, 'Vary', 'Cookie'];
  expect(toPrivate(['A', 'b', 'cache-control', sent], true)).toEqual(fields);
});

it.each<[string, string[], boolean, string[]]>([
  [
    'Cache-Control lines',
    ['Cache-Control', 'public', 'cache-control', 'max-age=1'],
    true,
    ['Vary', 'Cookie'],
  ],
  ['a Vary with Cookie', ['Vary', 'Accept, COOKIE'], true, ['Vary', 'Accept, COOKIE']],
  ['Vary: *', ['Vary', '*'], true, ['Vary', '*']],
  ['Vary lines', ['Vary', 'A', 'vary', 'B'], true, ['Vary', 'A, B, Cookie']],
  ['fields for CDNs', ['CDN-Cache-Control', 'max-age=9', 'Surrogate-Control', 'max-age=9'], false, []],
  ['nginx and Cloudflare fields', ['X-Accel-Expires', '9', 'Cloudflare-CDN-Cache-Control', 'x'], false, []],
])('merges or drops %s', (_, sent, variesByCookie, expected) => {
  const control = ['Cache-Control', sent[1] === 'public' ? 'private, max-age=1' : 'private'];
  expect(toPrivate(sent, variesByCookie)).toEqual([...control, ...expected]);
});

it('leaves Vary unchanged if the answer does not depend on a cookie', () => {
  const vary = ['Vary', 'A', 'vary', 'B'];
  expect(toPrivate(vary, false)).toEqual([...vary, 'Cache-Control', 'private']);
});
