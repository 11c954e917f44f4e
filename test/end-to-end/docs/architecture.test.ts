import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';

const root = path.join(import.meta.dirname, '../../..');
const page = readFileSync(path.join(root, 'docs/architecture.md'), 'utf8');
const named = [...new Set(page.match(/\b(?:src|test|scripts|config|docs)\/[\w./-]*[\w]/g))];

it.each(named)('docs/architecture.md: %s exists', (name) => {
  expect(existsSync(path.join(root, name))).toBe(true);
});

it('docs/architecture.md: every folder of src is in the table', () => {
  const folders = readdirSync(path.join(root, 'src'), { withFileTypes: true }).filter((one) =>
    one.isDirectory(),
  );
  const table = page.split('\n').filter((line) => line.startsWith('|`src/'));
  const listed = table.flatMap((line) => line.split('|')[1]?.match(/src\/[\w-]+(?=`)/g) ?? []);
  expect(listed.toSorted()).toEqual(folders.map(({ name }) => `src/${name}`).toSorted());
});

it.each([
  'row of the protected list',
  'refusal',
  'configuration key',
  'filter',
  'component',
  'metric',
  'endpoint of the admin port',
  'kind of Redis',
  'verb',
])('docs/architecture.md says where to add a %s', (what) => {
  const row = page.split('\n').find((line) => line.startsWith('|') && line.split('|')[1]?.includes(what));
  expect(row?.match(/`(?:src|config)\/[\w./-]+`/g)?.length).toBeGreaterThan(0);
});
