import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compileListInThread } from '../../src/access/list-thread.ts';
import { compileProtectedList } from '../../src/access/protected-list.ts';
import { parseProtectedList } from '../../src/access/protected-list-document.ts';
import { renderProtectedResources } from '../../src/access/published-documents.ts';
import type { Problem } from '../../src/lib/problem.ts';

const options = { ignoredPrefixes: ['/index.php'] };
const file = 'list.yaml';

const errorsOf = (problems: readonly Problem[]) => problems.filter(({ severity }) => severity === 'error');

const segments = fc.constantFrom('carts', 'CARTS', 'items', '{id}', '{other}', 'a%20b', 'x');
const templates = fc
  .tuple(fc.array(segments, { minLength: 1, maxLength: 4 }), fc.boolean())
  .map(([parts, rest]) => `/${[...new Set(parts), ...(rest ? ['**'] : [])].join('/')}`);
const rows = fc.record({
  method: fc.constantFrom('GET', 'POST', 'PATCH', 'ANY', 'OPTIONS'),
  template: templates,
  scopes: fc.subarray(['one', 'two']),
  observe: fc.boolean(),
});
/** Some are no list: then the problems must be the same. */
const texts = fc.array(rows, { minLength: 1, maxLength: 60 }).map((list) => {
  const lines = list.map(
    ({ method, template, scopes, observe }) =>
      `    - { match: "${method} ${template}"${scopes.length > 0 ? `, scopes: [${scopes}]` : ''}, observe: ${observe} }`,
  );
  return `groups:\n  A:\n${lines.join('\n')}\ncomplete: true\n`;
});
const requests = fc.record({
  method: fc.constantFrom('GET' as const, 'POST' as const, 'PATCH' as const, 'OPTIONS' as const),
  segments: fc.array(fc.constantFrom('carts', 'Carts;x', 'items', '1', '', 'index.php', 'a%20b', 'x'), {
    minLength: 1,
    maxLength: 6,
  }),
  alternativeSegments: fc.constant(undefined),
  isFormPost: fc.boolean(),
});

describe('a list that is compiled beside what is served', () => {
  it('is the one that is compiled at once', async () => {
    await fc.assert(
      fc.asyncProperty(texts, fc.array(requests, { maxLength: 40 }), async (text, asked) => {
        const parsed = parseProtectedList(text, file);
        const compiled = await compileListInThread({ text, file }, options);
        if (parsed.list === undefined || !('list' in compiled)) {
          expect(compiled).toEqual({ problems: errorsOf(parsed.problems) });
          return;
        }
        const atOnce = compileProtectedList(parsed.list, options);
        expect(compiled.list.rows).toEqual(atOnce.rows);
        expect(compiled.rendered).toEqual(renderProtectedResources(atOnce));
        for (const request of asked) {
          expect(compiled.list.match(request)).toEqual(atOnce.match(request));
          expect(compiled.list.matchRows(request)).toEqual(atOnce.matchRows(request));
        }
      }),
      { numRuns: 40 },
    );
  });

  it('comes in more than one batch', async () => {
    const lines = Array.from({ length: 1001 }, (_, i) => `    - GET /a-${i}`);
    const text = `groups:\n  A:\n${lines.join('\n')}\ncomplete: true\n`;
    const compiled = await compileListInThread({ text, file }, options);
    expect('list' in compiled && compiled.list.rows).toEqual(parseProtectedList(text, file).list?.rows);
  });

  it('is refused with its first problems where it has thousands', async () => {
    const lines = Array.from({ length: 1000 }, () => '    - GET nothing');
    const text = `groups:\n  A:\n${lines.join('\n')}\ncomplete: true\n`;
    const refused = await compileListInThread({ text, file }, options);
    expect('problems' in refused && refused.problems).toEqual(
      errorsOf(parseProtectedList(text, file).problems).slice(0, 200),
    );
  });
});
