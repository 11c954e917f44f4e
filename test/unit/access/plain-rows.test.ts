import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseDocument } from 'yaml';
import { rowsOf } from '../../../src/access/plain-rows.ts';
import { parseProtectedList } from '../../../src/access/protected-list-document.ts';

/** A comment that makes the text long enough to be cut into rows. It changes no row. */
const padding = `# ${'x'.repeat(20_000)}\n`;
const withoutPlainRows = (text: string) => parseProtectedList(padding + text, 'list.yaml');

/** The same list, parsed as one document. Line numbers count the line of `padding`. */
function inOne(text: string) {
  const { list, problems } = parseProtectedList(text, 'list.yaml');
  const below = <T extends { readonly line: number }>(one: T) => ({ ...one, line: one.line + 1 });
  return {
    rows: list?.rows.map((row) => ({ ...row, source: below(row.source) })),
    problems: problems.map((problem) => {
      const text = problem.text.replace(/in line (\d+)/, (_, line) => `in line ${Number(line) + 1}`);
      return below({ ...problem, text });
    }),
  };
}

/** Lines of lists, valid and invalid, for random lists. */
const parts = fc.constantFrom(
  ...`    - GET /a
    - GET /b/{id}
    - POST /a
    - "GET /q"
    - 'GET /s' # why
    - GET /c
    - { match: GET /m, scopes: [one] }
    - match: GET /n
      scopes: [two, three]
    -
      observe: true
    # a comment
# a comment

      # deeper
    - GET /d  ${''}
    - get /e
  B:
  C: # next
   - GET /f
     - GET /g
  - GET /h
- GET /i
      more
  more
more
    - "GET /open
      /quote"
    - [GET /j
    - GET /k]
    - { match: GET /l
      }
"
    - |
      GET /block
    - >-
    - &x GET /anchor
    - *x
    - !!str GET /tag
    - ~
---
...
%YAML 1.1
\t- GET /tab
    -\tGET /tab
    - GET /cr\r
    - GET /z: y
    - ? GET
complete: true
groups:
tokenIn:
  - header
  - cookie:t
    - ${rowsOf(0)}
  D: |
  E: "
    - - GET /nested
      - GET /nested2
    - GET /\u2028
    - GET /ü
  <<: *x`.split('\n'),
);
const texts = fc
  .tuple(
    fc.constantFrom('groups:', 'tokenIn: cookie:a\ngroups:', '"groups":', 'groups: # rows'),
    fc.array(parts, { maxLength: 14 }),
    fc.constantFrom('complete: true\n', 'complete: true', ''),
  )
  .map(([head, lines, tail]) => [head, '  A:', ...lines, tail].join('\n'));

describe('a long list, whose plain rows bypass the YAML parser', () => {
  it('has the same rows and problems as when it is parsed as one document', () => {
    const seen = { lists: 0, errors: 0 };
    fc.assert(
      fc.property(texts, (text) => {
        const one = inOne(text);
        const cut = withoutPlainRows(text);
        expect(cut.list?.rows, text).toEqual(one.rows);
        if (one.rows === undefined) {
          seen.errors++;
          return;
        }
        seen.lists++;
        expect(cut.problems).toEqual(one.problems);
        expect(parseDocument(text).errors).toEqual([]);
      }),
      { numRuns: Number(process.env.PLAIN_RUNS ?? 500) },
    );
    expect(Math.min(seen.lists, seen.errors)).toBeGreaterThan(10);
  });

  it('names the line and the column of each mistake', () => {
    const rows = (from: number, to: number) =>
      Array.from({ length: to - from }, (_, i) => `    - GET /a-longer-row-${from + i}\n`).join('');
    const long = `    - { match: "GET /long", scopes: [a, b] }\n`;
    const text = `groups:\n  A:\n${rows(0, 900)}    - get /lower\n${rows(900, 1_000)}    - { match: GET /x, scope: [a] }\n${long}    - GET /a-longer-row-7\n    - "GET /open\ncomplete: true\n`;
    const { problems } = parseProtectedList(text, 'list.yaml');
    expect(
      problems.map(({ line, column, text: words }) => `${line}:${column} ${words.slice(0, 40)}`),
    ).toEqual([
      '903:7 methods are written in upper case: GET',
      '1004:24 unknown key: did you mean scopes? a row ',
      '1006:7 the same row is in line 10',
      '1007:7 "open complete: true" can never match: a',
      '1009:1 a quote, bracket, comma or colon is miss',
    ]);
  });

  it.each([
    ['with a megabyte besides its rows', `  A: [GET /a]\n# ${'x'.repeat(1_000_000)}\n`, 1],
    ['with a row that is too long', `  A:\n    - "GET /a\\\n${'      x\n'.repeat(20_000)}"\n`, 3],
  ])('a list %s: an error at its line', (_, groups, line) => {
    const { list, problems } = parseProtectedList(`groups:\n${groups}complete: true\n`, 'list.yaml');
    expect(list).toBeUndefined();
    expect(problems[0]).toMatchObject({ line, severity: 'error' });
  });
});
