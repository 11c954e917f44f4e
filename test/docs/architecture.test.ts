import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';

const root = path.join(import.meta.dirname, '../..');
const page = readFileSync(path.join(root, 'docs/architecture.md'), 'utf8');
const named = [...new Set(page.match(/\b(?:src|test|scripts|config|docs)\/[\w./-]*[\w]/g))];

it.each(named)('docs/architecture.md: %s exists', (name) => {
  expect(existsSync(path.join(root, name))).toBe(true);
});

it.each(['row of the protected list', 'refusal', 'configuration key', 'filter', 'engine', 'verb'])(
  'docs/architecture.md says where to add a %s',
  (what) => {
    const row = page.split('\n').find((line) => line.startsWith('| ') && line.split('|')[1]?.includes(what));
    expect(row?.match(/`(?:src|config)\/[\w./-]+`/g)?.length).toBeGreaterThan(0);
  },
);
