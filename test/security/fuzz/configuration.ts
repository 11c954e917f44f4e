import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import fc from 'fast-check';
import { compileProtectedList } from '../../../src/access/packed-list.ts';
import { parseProtectedList } from '../../../src/access/protected-list-document.ts';
import { validateConfig } from '../../../src/config/load.ts';
import { parseSourceDocument, readPlainValue } from '../../../src/config/source-document.ts';
import type { Problem } from '../../../src/lib/problem.ts';
import { type FuzzTarget, fuzzTarget } from './fuzz-target.ts';

const folder = path.join(import.meta.dirname, '../../../config');
const read = (name: string) => readFileSync(path.join(folder, name), 'utf8');
const configuration = read('shopward.yaml');
const list = read('protected-resources.yaml');
const rowsOfList = parseProtectedList(list, 'p.yaml').list?.rows.length;

const yamlParts = [
  ...[
    '\n',
    '\n  ',
    '\n    ',
    '  - ',
    ': ',
    ', ',
    '{ ',
    ' }',
    '[',
    ']',
    '"',
    "'",
    '#',
    '|',
    '>',
    '&a ',
    '*a',
    '!x ',
    '? ',
  ],
  ...[
    '---\n',
    '...\n',
    '<<: ',
    '\t',
    '\r',
    '\0',
    '\uFEFF',
    '${A}',
    '${A:-1}',
    '${',
    '${file:x}',
    '__proto__: ',
    '~',
  ],
  ...[
    ...'false 1e999 0x10 30s -1'.split(' '),
    'GET /x',
    'ANY /**',
    'GET /{id}',
    '{ match: "GET /y" }',
    'complete: true\n',
  ],
  ...[
    'scopes: [a]',
    'observe: true',
    'Carts:',
    'groups:',
    '%YAML 1.1\n',
    '/carts/{a}/{a}',
    '%2F',
    ' '.repeat(40),
  ],
];
/** Edits: anywhere, text is removed and other text is inserted. */
const edits = fc.array(
  fc.record({ at: fc.nat(20_000), cut: fc.nat(30), chunk: fc.constantFrom('', ...yamlParts) }),
  { minLength: 1, maxLength: 4 },
);
type Edits = readonly { readonly at: number; readonly cut: number; readonly chunk: string }[];

function edited(text: string, all: Edits): string {
  return all.reduce((now, { at, cut, chunk }) => {
    const index = now.length === 0 ? 0 : at % now.length;
    return now.slice(0, index) + chunk + now.slice(index + cut);
  }, text);
}

function checkProblems(problems: readonly Problem[], text: string): void {
  const lines = text.split(/\r\n|\n|\r/).length;
  for (const { line, column, text: words } of problems) {
    assert(line >= 1 && line <= lines && column >= 1, `${line}:${column} is no position`);
    assert.match(words, /^[^\n]+$/);
  }
}

const sources = { variables: { A: '5' }, readFile: () => ({ text: 'secret' }) };

/** Files that operators edit. No edit may throw, and a cut or broken list must not be accepted with fewer rows. */
export const configurations: readonly FuzzTarget[] = [
  fuzzTarget(
    'configuration',
    edits,
    (all) => {
      const text = edited(configuration, all);
      const document = parseSourceDocument(text, 'c.yaml');
      const plain = readPlainValue(document.root, sources);
      const { problems } = validateConfig(plain.value, plain.problems);
      const placed = problems.map(({ path: index, text: words }) => document.problemAt(index, words));
      checkProblems([...document.problems, ...placed], text);
    },
    { runs: 150 },
  ),
  fuzzTarget(
    'protected-list',
    edits,
    (all) => {
      const text = edited(list, all);
      const parsed = parseProtectedList(text, 'p.yaml');
      checkProblems(parsed.problems, text);
      if (parsed.list === undefined) return;
      const compiled = compileProtectedList(parsed.list, { ignoredPrefixes: ['/index.php'] });
      assert(compiled.rows.length > 0);
      for (const row of compiled.rows) {
        const segments = row.template
          .slice(1)
          .replace('**', 'x')
          .replace(/\{[^}]*\}/g, 'x')
          .split('/');
        const method = row.method === 'ANY' ? 'GET' : row.method;
        const request = { method, segments, alternativeSegments: undefined, isFormPost: false };
        assert(compiled.match(request), `${row.method} ${row.template} is never met`);
      }
    },
    { runs: 100 },
  ),
  fuzzTarget(
    'protected-list-cut-short',
    fc.record({ end: fc.nat(list.length), tail: fc.constantFrom('', '\n', ' ', '\0', '\n\n\n') }),
    ({ end, tail }) => {
      const parsed = parseProtectedList(list.slice(0, end) + tail, 'p.yaml');
      if (parsed.list !== undefined) assert.equal(parsed.list.rows.length, rowsOfList);
    },
    { runs: 100 },
  ),
];
