import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { ProtectedResource } from '../../src/access/protected-list.ts';
import { createOverlaps } from '../../src/access/protected-list-overlaps.ts';
import { foldSegment } from '../../src/http/path-folding.ts';
import { isTemplateProblem, type PathTemplate, parsePathTemplate } from '../../src/http/path-template.ts';

interface Row {
  readonly row: ProtectedResource;
  readonly path: PathTemplate;
}

function rowOf(method: ProtectedResource['method'], template: string): Row {
  const path = parsePathTemplate(template);
  if (isTemplateProblem(path)) throw new Error(template);
  const source = { file: 'list.yaml', line: 1, column: 1 };
  return { row: { method, template, group: 'A', scopes: [], observe: false, source }, path };
}

/** By the definition, place by place; of each two rows, and so too dear for a list of thousands. */
function overlap(one: Row, other: Row): boolean {
  const methods = [one.row.method, other.row.method];
  if (methods[0] !== methods[1] && !methods.includes('ANY')) return false;
  const [short, long] = one.path.segments.length <= other.path.segments.length ? [one, other] : [other, one];
  if (short.path.segments.length !== long.path.segments.length && !short.path.rest) return false;
  return short.path.segments.every((part, place) => {
    const opposite = long.path.segments[place];
    if (opposite === undefined || !('literal' in part) || !('literal' in opposite)) return true;
    return foldSegment(part.literal) === foldSegment(opposite.literal);
  });
}

it('the earliest row that overlaps is found, as by comparing each two', () => {
  const part = fc.constantFrom('a', 'A', 'b', '{x}');
  const row = fc
    .tuple(
      fc.constantFrom<ProtectedResource['method']>('GET', 'POST', 'ANY'),
      fc.array(part, { maxLength: 3 }),
      fc.boolean(),
    )
    .filter(
      ([, parts, rest]) => (parts.length > 0 || rest) && parts.filter((one) => one === '{x}').length < 2,
    )
    .map(([method, parts, rest]) => rowOf(method, `/${[...parts, ...(rest ? ['**'] : [])].join('/')}`));
  fc.assert(
    fc.property(fc.array(row, { maxLength: 12 }), (rows) => {
      const overlaps = createOverlaps();
      for (const [i, { row, path }] of rows.entries()) {
        const expected = rows.slice(0, i).find((earlier) => overlap(earlier, rows[i] as Row))?.row;
        expect(overlaps.add(row, path)).toBe(expected);
      }
    }),
    { numRuns: 2000 },
  );
});
