import { expect, it } from 'vitest';
import { addressUrl } from '../../../src/app/admin.ts';

it.each([
  ['0.0.0.0', 'http://127.0.0.1:80'],
  ['::', 'http://[::1]:80'],
  ['::1', 'http://[::1]:80'],
  ['192.0.2.1', 'http://192.0.2.1:80'],
])('a listener at %s is reached at %s', (address, url) => {
  expect(addressUrl('http', { address, port: 80, family: '' })).toBe(url);
});
