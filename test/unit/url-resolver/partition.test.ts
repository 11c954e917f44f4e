import { expect, it } from 'vitest';
import {
  createLocaleNegotiation,
  createPartitions,
  mappingKey,
} from '../../../src/url-resolver/partition.ts';

it.each([
  ['', 'en'],
  ['de', 'de'],
  ['DE', 'de'],
  ['de-AT', 'de'],
  ['de_DE', 'de'],
  ['de-AT, en;q=0.5', 'de'],
  ['fr, de;q=0.2', 'de'],
  ['fr', 'en'],
  ['*', 'en'],
  ['en;q=0.1, de;q=0.9', 'de'],
  ['de;q=0', 'en'],
  ['"', 'en'],
  ['\u00ff,,,;q=', 'en'],
  [`de${',xx'.repeat(400)}`, 'en'],
])('Accept-Language %j -> %s', (field, locale) => {
  expect(createLocaleNegotiation(['en', 'de'])(field)).toBe(locale);
});

it('5000 languages, stores and hosts: six prefixes for two locales and two stores', () => {
  const find = createPartitions(['en', 'de'], ['DE', 'AT'], false);
  const prefixes = new Set<string | undefined>();
  for (let i = 0; i < 5000; i += 1) {
    const store = [undefined, 'DE', 'AT', `X${i}`, 'de'][i % 5];
    prefixes.add(find(i % 2 === 0 ? `x${i}` : `x${i}, de;q=0.${i}`, store, `h${i}.example`).prefix);
  }
  prefixes.delete(undefined);
  expect(prefixes.size).toBe(6);
});

it.each([
  ['shop.de', undefined, true],
  ['SHOP.DE', undefined, true],
  ['other.example', undefined, true],
  ['shop.de', 'shop.at', true],
  ['shop.de', 'other', false],
])('byHost, host %s, store %s: cacheable: %s', (host, store, isCacheable) => {
  const find = createPartitions(['en'], ['shop.de', 'shop.at'], true);
  expect(find('', store, host).prefix !== undefined).toBe(isCacheable);
});

it('each combination of locale, store and host has its own prefix', () => {
  const stores = ['shop.de', 'shop.at'];
  const find = createPartitions(['en', 'de'], stores, true);
  const prefixes = ['en', 'de'].flatMap((locale) =>
    [undefined, ...stores].flatMap((store) => stores.map((host) => find(locale, store, host).prefix)),
  );
  expect(prefixes).not.toContain(undefined);
  expect(new Set(prefixes).size).toBe(12);
});

it('keys differ by partition and URL, and are shorter than 100 characters', () => {
  const long = `/${'x'.repeat(2000)}`;
  const keys = [
    mappingKey('["en","",""]', '/a'),
    mappingKey('["en","",""]', '#a'),
    mappingKey('["de","",""]', '/a'),
    mappingKey('["en","",""]', long),
    mappingKey('["en","",""]', `${long}x`),
  ];
  expect(new Set(keys).size).toBe(keys.length);
  for (const key of keys) expect(key.length).toBeLessThan(100);
});
