import fc from 'fast-check';
import { expect, it } from 'vitest';
import { mappingKey } from '../../src/url-resolver/partition.ts';
import { createQueryReader, keyOf, readResolverQuery } from '../../src/url-resolver/resolver-query.ts';

it('says of a remembered query what a first reading says, for every prefix', () => {
  const read = createQueryReader();
  const query = fc.tuple(
    fc.constantFrom('?url=', '?x&url=', '?url=/a&_store='),
    fc.integer({ max: 30, min: 0 }),
  );
  fc.assert(
    fc.property(fc.array(query, { maxLength: 60 }), (queries) => {
      for (const [start, number] of queries) {
        const text = `${start}/%C3%BC/${number}`;
        const known = read(text);
        const first = readResolverQuery(text);
        expect({ url: known.url, store: known.store, self: known.selfQuery }).toEqual({
          ...first,
          self: text,
        });
        const url = String(first.url);
        for (const prefix of ['["en"]', '["de"]'])
          expect(keyOf(known, prefix, url)).toBe(mappingKey(prefix, url));
      }
    }),
  );
});

it('remembers the last few thousand queries', () => {
  const read = createQueryReader();
  const first = read('?url=/a');
  expect(read('?url=/a')).toBe(first);
  for (let i = 0; i < 10_000; i += 1) read(`?url=/${i}`);
  expect(read('?url=/a')).not.toBe(first);
});
