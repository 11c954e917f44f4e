import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { runHere } from '../../unit/cli/command-line-here.ts';

/** Files, scripts, verbs, options, metrics and keys that a page names exist. scripts/check-words.ts checks the words. */
const root = path.join(import.meta.dirname, '../../..');
const read = (file: string) => readFileSync(path.join(root, file), 'utf8');
const pages = [
  'README.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  ...globSync('{docs,deploy}/**/*.md', { cwd: root }),
].sort();
const sources = globSync('src/**/*.ts', { cwd: root })
  .map((file) => read(file))
  .join('\n');
const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
const { properties } = JSON.parse(read('config/shopward.schema.json')) as { properties: object };
const keys = new Set(
  [...read('docs/configuration.md').matchAll(/^(?:\||## )`([\w.[\]]+)`/gm)].map(([, key]) => key),
);

describe.each(pages)('%s', (page) => {
  const text = read(page);

  it('names existing files and folders', () => {
    // Made by the reader.
    const own = ['deploy/admin-token'];
    const named = text.matchAll(
      /`(?:npx vitest run )?((?:src|scripts|bench|demo|config|deploy|test)\/[\w./*-]+)/g,
    );
    const missing = [...named]
      .map(([, name = '']) => name.replace(/[.,]$/, ''))
      .filter(
        (name) =>
          !own.includes(name) &&
          globSync(name.endsWith('.test') ? `${name}.ts` : name, { cwd: root }).length === 0,
      );
    expect(missing).toEqual([]);
  });

  it('names existing scripts of package.json', () => {
    const named = [...text.matchAll(/npm run (?:-s )?([a-z][\w:]*)/g)].map(([, name = '']) => name);
    expect(named.filter((name) => scripts[name] === undefined)).toEqual([]);
  });

  it('names existing verbs and options of shopward', async () => {
    for (const [, command = ''] of text.matchAll(/(?:`|^\$ )shopward ([^`\n]+)/gm)) {
      const [first = '', second = ''] = command.split(/\s+/);
      if (!/^[a-z]+$/.test(first) || first === 'is') continue;
      const verb = first === 'protected' ? [first, second] : [first];
      const { stdout } = await runHere([...verb, '--help']);
      expect(stdout, command).toContain(`Usage: shopward ${verb.join(' ')} `);
      for (const [option] of command.matchAll(/--[a-z-]+/g)) expect(stdout, command).toContain(option);
    }
  });

  it('names existing metrics', () => {
    const named = [...text.matchAll(/\bshopward_[a-z_]+[a-z]/g)].map(([name]) => name);
    // The code puts names of store and connection metrics together from a prefix and the rest.
    const isKnown = (name: string) => {
      const series = name.replace(/_(?:total|bucket|sum|count)$/, '');
      return [series, series.replace(/^shopward_(?:store|connections)_/, '')].some((one) =>
        sources.includes(`'${one}`),
      );
    };
    expect(named.filter((name) => !isKnown(name))).toEqual([]);
  });

  it('names existing keys of the configuration', () => {
    const named = [...text.matchAll(/`([a-z]\w*)((?:\.[a-zA-Z]+)+)(?:`|: )/g)]
      .filter(([, section = '']) => section in properties)
      .map(([, section = '', rest = '']) => section + rest);
    expect(
      named.filter((name) => !keys.has(name) && !keys.has(name.replace('.resources.', '.resources[].'))),
    ).toEqual([]);
  });
});

/** Counts like `wc -w`, but each cell of a table apart. */
const words = (page: string) =>
  read(page)
    .split(/\s+|\||<br>|-{3}/)
    .filter((word) => word !== '').length;

it('pages stay short: README, CHANGELOG, all pages for users and all decisions have a limit', () => {
  const forUsers = pages.filter((page) => /^(?:[A-Z]+\.md|docs\/[^/]+\.md)$/.test(page));
  const sum = (some: readonly string[]) => some.reduce((total, page) => total + words(page), 0);
  expect(words('README.md')).toBeLessThanOrEqual(900);
  expect(words('CHANGELOG.md')).toBeLessThanOrEqual(500);
  expect(sum(forUsers)).toBeLessThanOrEqual(25_000);
  expect(sum(globSync('docs/decisions/*.md', { cwd: root }))).toBeLessThanOrEqual(10_000);
});

it('no cell of a hand-written table has more than 25 words', () => {
  const generated = ['docs/configuration.md', 'docs/results.md'];
  const long = pages
    .filter((page) => !generated.includes(page) && !page.startsWith('docs/decisions/'))
    .flatMap((page) =>
      read(page)
        .split('\n')
        .filter((line) => line.startsWith('|'))
        .flatMap((line) => line.split('|'))
        .filter((cell) => cell.trim().split(/\s+/).length > 25)
        .map((cell) => `${page}: ${cell.trim().slice(0, 60)}`),
    );
  expect(long).toEqual([]);
});
