import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  collectionKey,
  digest,
  foldId,
  memberKey,
  subjectOf,
  variantOf,
} from '../../../src/entity-tags/keys.ts';
import { anyText } from '../../harness/any-text.ts';

const template = '/carts/{cart_id}';

test('without a token the subject depends on the guest id, Authorization and Cookie, and on no other field', () => {
  const of = (...fields: string[]) => subjectOf({ fields }, undefined);
  const named = ['X-Anonymous-Customer-Unique-Id', 'Authorization', 'Cookie'];
  const subjects = named.flatMap((name) => [of(name, 'a'), of(name, 'b')]);
  expect(new Set([...subjects, of()]).size).toBe(7);
  expect(of('User-Agent', 'a')).toBe(of());
  expect(subjectOf({ fields: ['Cookie', 'a'] }, { subject: 'anna' })).toBe(
    subjectOf({ fields: [] }, { subject: 'anna' }),
  );
});

describe('keys of records', () => {
  test('different ids, templates and subjects have different keys', () => {
    const keys = [
      memberKey(template, ['a']),
      memberKey(template, ['b']),
      memberKey('/orders/{id}', ['a']),
      memberKey('/c/{c}/a/{a}', ['1', '23']),
      memberKey('/c/{c}/a/{a}', ['12', '3']),
      memberKey('/c/{c}/a/{a}', ['1', '2:3']),
      memberKey(template, ['1:a']),
      collectionKey('/carts', [], 'subject a'),
      collectionKey('/carts', [], 'subject b'),
      collectionKey('/carts', [], 'unverified a'),
      collectionKey('/carts', ['a'], ''),
    ];
    expect(new Set(keys).size).toBe(keys.length);
  });

  test('any id becomes 48 hexadecimal digits; two have the same key exactly if they fold to one id', () => {
    fc.assert(
      fc.property(anyText(), anyText(), (a, b) => {
        assert.match(memberKey(template, [a]), /^[0-9a-f]{48}$/);
        assert.equal(memberKey(template, [a]) === memberKey(template, [b]), foldId(a) === foldId(b));
      }),
      { numRuns: 500 },
    );
  });

  test('two lists of parts have the same digest exactly if they are equal', () => {
    fc.assert(
      fc.property(fc.array(fc.string()), fc.array(fc.string()), (a, b) => {
        expect(digest(a) === digest(b)).toBe(JSON.stringify(a) === JSON.stringify(b));
      }),
    );
  });

  test.each([
    ['abc', 'ABC', 'abc ', 'abc\t\u00a0', 'a\u00adb\u200bc\ufeff'],
    ['a', 'a;b=c', 'a. .', '\uff21'],
    ['e', '\u00c9'],
    ['strasse', 'Straße', 'STRAẞE'],
    ['goods', 'gꝏds'],
    ['aesop', 'æsop'],
    ['rod', 'rød', 'ro\u0111'],
    ['ab', 'a\u200bb', 'a\u00adb', 'a\u0640b', 'a\u0903b', 'a\u20ddb', 'a\ufff9b', '\u{1f150}\u{1f171}'],
    ['12', '\uff11\uff12', '\u0661\u0662', '\u1369\u0f2b'],
    ['12', '0012'],
    ['0', '0', '00'],
    ['1', ' 1', '+1', '\u3000+001.000 ', '1.0'],
    [
      'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11',
      ...['a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'],
      ...['a0eebc999c0b4ef8bb6d6bb9bd380a11', '{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}'],
      ...['a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11', 'urn:uuid:a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'],
    ],
    [
      '0a0b0c0d-0001-4ef8-8b6d-0bb9bd380a11',
      'a0b0c0d-1-4ef8-8b6d-bb9bd380a11',
      '+a0b0c0d-1-4ef8-8b6D-+bb9bd380a11',
    ],
    ['1', '00000000-0000-0000-0000-000000000001', '1'.padStart(32, '0'), '0-0-0-0-1'],
    ...['a0eebc99-9c0b-4ef8-bb6d', 'g'.repeat(32), 'a-b-c-d-g'].map((unchanged) => [unchanged, unchanged]),
    ...['0a', '1.5', '1e0', '1a', ' a'].map((unchanged) => [unchanged, unchanged]),
  ])('foldId gives %j, as a database may, for %j', (id, ...spellings) => {
    expect(spellings.map(foldId)).toEqual(spellings.map(() => id));
  });
});

describe('variants', () => {
  const variant = (fields: readonly string[], kind: 'read' | 'created' = 'read', path = '/carts/1') =>
    variantOf({ fields: [...fields], host: 'shop.example', path, query: '' } as never, 'subject u', kind);
  const plain = variant([]);

  // A shop may choose its answer by any of these. If one were left out, two answers would share a variant.
  test.each(['Accept', 'Accept-Language', 'Content-Type', 'Store', 'X-Agent-Authorization'])(
    'another value of %s is another variant',
    (name) => {
      const [one, other] = [variant([name, 'a']), variant([name, 'b'])];
      expect(new Set([plain, one, other]).size).toBe(3);
    },
  );

  // Each of these may lead to other octets, for which a strong tag must differ.
  test('another path, kind or Accept-Encoding (in any case) is another variant', () => {
    const sent = 'gzip|gzip;q=0|gzip, br|br, gzip|gzip;q=0.1, br|zstd|deflate|dcb|*'.split('|');
    const codings = sent.map((coding) => variant(['Accept-Encoding', coding]));
    const others = [plain, variant([], 'created'), variant([], 'read', '/carts/2')];
    expect(new Set([...others, ...codings]).size).toBe(sent.length + 3);
    expect(variant(['Accept-Encoding', 'GZIP,  Br'])).toBe(codings[2]);
    expect(variant(['User-Agent', 'x', 'Cookie', 'a=b'])).toBe(plain);
  });
});
