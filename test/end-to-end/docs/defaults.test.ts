import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';

const root = path.join(import.meta.dirname, '../../..');
const read = (page: string) => readFileSync(path.join(root, page), 'utf8');

/** Key -> default in docs/configuration.md, which is generated from the schema. */
const defaults = new Map(
  [...read('docs/configuration.md').matchAll(/^\|`([\w.]+)`\|[^|]+\|`([^`]+)`\|/gm)].map(
    ([, key = '', value = '']) => [key, value],
  ),
);

/** Matches "5 s (`limits.eventLoopStall`)" and "`entityTags.lease` (15 s)". */
const spoken =
  /(?<before>\d+(?: s| ms|[KM]iB)) \(`(?<key>[a-z]\w*\.[\w.]+)`|`(?<name>[a-z]\w*\.[\w.]+)` \((?<after>\d+(?: s| ms|[KM]iB))[):,]/g;

it('a value that a page names with its key is the default of the key', () => {
  const said = ['SECURITY.md', 'README.md', ...globSync('docs/**/*.md', { cwd: root })].flatMap((page) =>
    [...read(page).matchAll(spoken)].map(({ groups = {} }) => ({
      page,
      key: groups.key ?? groups.name ?? '',
      value: (groups.before ?? groups.after ?? '').replace(' ', ''),
    })),
  );
  expect(said).toContainEqual({ page: 'SECURITY.md', key: 'limits.eventLoopStall', value: '5s' });
  const known = said.filter(({ key }) => defaults.has(key));
  expect(known.length).toBeGreaterThanOrEqual(3);
  expect(known.filter(({ key, value }) => defaults.get(key) !== value)).toEqual([]);
});
