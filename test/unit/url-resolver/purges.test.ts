import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { phpDecode, rawPhpDecode } from '../../../demo/http/request.ts';
import { foldUrl, maxPrefixes, maxUrls, type Purge, Purges } from '../../../src/url-resolver/purges.ts';

/** The key under which the shop looks up a `url` that has been decoded once. */
function shopKey(url: string): string {
  const decoded = rawPhpDecode(phpDecode(url));
  return decoded
    .replace(/^[ \t\n\r\0\v]+|[ \t\n\r\0\v]+$/g, '')
    .toLowerCase()
    .replace(/["' \0\r\n]/g, '-');
}

/** Each row: spellings that the shop reads as one letter. */
const spellings: readonly (readonly string[])[] = [
  ['a', 'A', '%61', '%41', '%2561'],
  ['/', '%2F', '%2f', '%252f'],
  ['-', ' ', "'", '"', '+', '%20', '%2520', '%00', '\r', '\0', '%2D'],
  ['ü', 'Ü', '%C3%BC', '%c3%9C'],
  ['σ', 'Σ', '%CE%A3'],
  ['ς', '%CF%82'],
  ['i̇', 'İ', '%C4%B0'],
  ['%zz', '%ZZ', '%25ZZ'],
  ['%', '%25'],
  ['é'],
  ['7', '%37'],
];
const text = fc.array(
  fc.nat(spellings.length - 1).chain((i) => fc.constantFrom(...(spellings[i] ?? []))),
  { maxLength: 8 },
);

const covers = (purge: Purge, url: string) => {
  const purges = new Purges();
  purges.add(purge);
  return purges.stampOf(url) > 0;
};

it.each([
  ['/en/Acer-Aspire', '/en/acer-aspire', true],
  ['/de/b%C3%BCcher', '/de/bücher', true],
  ['/de/b%c3%bccher', '/de/BÜCHER', true],
  ["/en/computer/pc's", '/en/computer/pc-s', true],
  ['/en/a+b', '/en/a b', true],
  ['/en/a%2520b', '/en/a b', true],
  [' /en/acer ', '/en/acer', true],
  ['%2Fen%2Facer', '/en/acer', true],
  ['/en/acer/', '/en/acer', false],
  ['en/acer', '/en/acer', false],
  ['/en//acer', '/en/acer', false],
  ['/en/acer?x=y', '/en/acer', false],
  ['/en/acer', '/en/acer-2', false],
])('%j and %j are the same URL: %s', (one, other, isOne) => {
  expect(shopKey(one) === shopKey(other)).toBe(isOne);
  expect(covers({ url: one }, other)).toBe(isOne);
  expect(covers({ url: other }, one)).toBe(isOne);
});

describe('a purge covers', () => {
  /** Two URLs with the same letters, each letter in a random spelling. */
  const pair = fc
    .array(fc.tuple(fc.nat(spellings.length - 1), fc.nat(20), fc.nat(20)), { maxLength: 8 })
    .map((letters) =>
      [1, 2].map((which) =>
        letters
          .map((letter) => {
            const ways = spellings[letter[0]] ?? [''];
            return ways[(letter[which] ?? 0) % ways.length];
          })
          .join(''),
      ),
    );

  it('every spelling that the shop reads as the same URL', () => {
    let alike = 0;
    fc.assert(
      fc.property(pair, ([one = '', other = '']) => {
        if (shopKey(one) !== shopKey(other)) return;
        if (one !== other) alike += 1;
        assert.equal(foldUrl(one), foldUrl(other));
        assert.ok(covers({ url: one }, other));
      }),
      { numRuns: 2000 },
    );
    expect(alike).toBeGreaterThan(100);
  });

  it('each URL that starts with the prefix, also in another spelling', () => {
    fc.assert(
      fc.property(text, text, (start, rest) => {
        const prefix = start.join('');
        assert.ok(covers({ prefix }, prefix + rest.join('')));
      }),
      { numRuns: 1000 },
    );
    expect(covers({ prefix: '/EN/B%C3%BCcher' }, '/en/bücher/x')).toBe(true);
    expect(covers({ prefix: '/en/b' }, '/de/b')).toBe(false);
  });
});

it('a stamp grows exactly when a purge covers its URL', () => {
  const url = fc.constantFrom('/a', '/a/b', '/a/c', '/b', '');
  const purge = fc.oneof(
    fc.constant<Purge>('all'),
    url.map((prefix) => ({ prefix })),
    url.map((one) => ({ url: one })),
  );
  fc.assert(
    fc.property(fc.array(purge, { maxLength: 12 }), url, (made, asked) => {
      const purges = new Purges();
      for (const one of made) {
        const before = purges.stampOf(asked);
        purges.add(one);
        const isCovered = one === 'all' || ('url' in one ? one.url === asked : asked.startsWith(one.prefix));
        if (isCovered) expect(purges.stampOf(asked)).toBeGreaterThan(before);
        else expect(purges.stampOf(asked)).toBe(before);
      }
    }),
  );
});

it.each<[string, number, (name: number) => Purge]>([
  ['URL', maxUrls, (name) => ({ url: `/${name}/` })],
  ['prefix', maxPrefixes, (name) => ({ prefix: `/${name}/` })],
])('one %s more than %i purges everything; a repeated purge does not count', (_, most, purgeOf) => {
  const purges = new Purges();
  for (let name = 0; name < most; name += 1) purges.add(purgeOf(name));
  purges.add(purgeOf(1));
  const stamps = () => ['/other', '/1/', '/2/'].map((url) => purges.stampOf(url));
  expect(stamps()).toEqual([0, most + 1, 3]);
  purges.add(purgeOf(most));
  expect(stamps()).toEqual([most + 2, most + 2, most + 2]);
});
