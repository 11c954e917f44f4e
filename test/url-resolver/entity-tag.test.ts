import { expect, it } from 'vitest';
import { contractEntityTypes as entityTypes } from '../../src/url-resolver/envelope.ts';
import { createMappingTag } from '../../src/url-resolver/mapping.ts';

it('is another for every mapping, locale and salt, and the same for the same', () => {
  const tags = new Set<string>();
  let made = 0;
  for (const salt of ['', 'https://api.shop.example', 'https://api.shop.example:8443']) {
    const [tagOf, again] = [createMappingTag(salt), createMappingTag(salt)];
    for (const locale of ['en', 'de', 'de-AT']) {
      for (const entityType of entityTypes) {
        for (let id = 0; id < 2000; id += 1) {
          const mapping = { entityType, entityId: String(id) };
          const tag = tagOf(mapping, locale);
          if (id % 100 === 0) expect(again(mapping, locale)).toBe(tag);
          tags.add(tag);
          made += 1;
        }
      }
    }
  }
  expect(tags.size).toBe(made);
  for (const tag of [...tags].slice(0, 100)) expect(tag).toMatch(/^"[\w-]{10}"$/);
});
