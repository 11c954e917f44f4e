import { existsSync, globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';

/** What every page names is there, and no page uses words that readers stumbled over. */
const root = path.join(import.meta.dirname, '../..');
const read = (file: string) => readFileSync(path.join(root, file), 'utf8');
const pages = ['README.md', 'SECURITY.md', ...globSync('{docs,deploy}/**/*.md', { cwd: root })].sort();
const sourceFiles = globSync('src/**/*.ts', { cwd: root }).sort();
const sources = sourceFiles.map((file) => read(file)).join('\n');
const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
const { properties } = JSON.parse(read('config/shopward.schema.json')) as { properties: object };
const keys = new Set(
  [...read('docs/configuration.md').matchAll(/^(?:\||##) `([\w.[\]]+)`/gm)].map(([, key]) => key),
);

/** Words with another name in docs/glossary.md, or that had to be read twice. */
const puzzling = [
  /\btold\b(?! (?:apart|from)\b)/,
  /\bjudg(?:e|es|ed|ing|ement)\b/,
  /\bby (?:its|their) form\b/,
  /\bthat (?:is|are) none\b/,
  /\blenient readings?\b/,
  /\bin earnest\b/,
  /\boff loopback\b/i,
  // A place only: of a time we say after.
  /\bbehind\b(?! (?:which|(?:the |a )?(?:trusted )?(?:proxies|proxy|front|balancer|Sentinels?|`trustedProxies`)))/i,
];

const puzzlingLinesOf = (file: string, words: readonly RegExp[]) =>
  read(file)
    .split('\n')
    .flatMap((line, index) =>
      words
        .filter((word) => word.test(line))
        .map((word) => `${file}:${index + 1}: ${word.source}: ${line.trim()}`),
    );

describe.each(pages)('%s', (page) => {
  const text = read(page);

  it('names files and folders that are there', () => {
    // Made by who follows the page.
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

  it('names scripts of package.json', () => {
    const named = [...text.matchAll(/npm run (?:-s )?([a-z][\w:]*)/g)].map(([, name = '']) => name);
    expect(named.filter((name) => scripts[name] === undefined)).toEqual([]);
  });

  it('names metrics that are there', () => {
    const named = [...text.matchAll(/\bshopward_[a-z_]+[a-z]/g)].map(([name]) => name);
    // The store's are put together: a prefix, and the rest of the name.
    const isKnown = (name: string) => {
      const series = name.replace(/_(?:total|bucket|sum|count)$/, '');
      return [series, series.replace(/^shopward_(?:store|connections)_/, '')].some((one) =>
        sources.includes(`'${one}`),
      );
    };
    expect(named.filter((name) => !isKnown(name))).toEqual([]);
  });

  it('names keys of the configuration that are there', () => {
    const named = [...text.matchAll(/`([a-z]\w*)((?:\.[a-zA-Z]+)+)(?:`|: )/g)]
      .filter(([, section = '']) => section in properties)
      .map(([, section = '', rest = '']) => section + rest);
    expect(
      named.filter((name) => !keys.has(name) && !keys.has(name.replace('.resources.', '.resources[].'))),
    ).toEqual([]);
  });

  it('uses plain words', () => {
    expect(puzzlingLinesOf(page, puzzling)).toEqual([]);
  });
});

/** Names that had another one before they had the field's (Envoy, OAuth, Node). */
const oldNames = [
  /\b(?:Rooms|Passage|MetGate|Lesson\w*|Flights|PartState|Handshake(?:Rooms)|Workings|Unwritten)\b/,
  /\b(?:judge|speak)[A-Z]\w*|\b(?:Spoken|Unread)[A-Z]\w*/,
  /\b(?:limping|hush)\b/,
];

it('the comments, texts and names of src use plain words, too', () => {
  expect(sourceFiles.length).toBeGreaterThan(100);
  expect(sourceFiles.flatMap((file) => puzzlingLinesOf(file, [...puzzling, ...oldNames]))).toEqual([]);
});

it('the glossary has twenty words at most, in their order, each with a place that is there', () => {
  const rows = [...read('docs/glossary.md').matchAll(/^\| ([^|]+) \| [^|]+ \| (.+) \|$/gm)].slice(1);
  const words = rows.map(([, word = '']) => word);
  expect(words.length).toBeLessThanOrEqual(20);
  expect(words).toEqual([...words].sort());
  for (const [, , where = ''] of rows) {
    const place = /`([^`]+)`/.exec(where)?.[1] ?? path.join('docs', /\(([^)]+)\)/.exec(where)?.[1] ?? '-');
    expect(existsSync(path.join(root, place)), where).toBe(true);
  }
});
