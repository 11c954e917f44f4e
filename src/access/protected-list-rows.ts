import type { Problem } from '../config/problem.ts';
import { foldSegment } from '../http/path-folding.ts';
import { type PathTemplate, templateShape } from '../http/path-template.ts';
import { createOverlaps } from './protected-list-overlaps.ts';
import type { ListSource } from './protected-list-source.ts';
import { type ProtectedResource, resourceId } from './protected-resource.ts';

/** A row as it was read, with its path taken apart. */
export interface ReadResource {
  readonly row: ProtectedResource;
  readonly path: PathTemplate;
  /** Of the row's text in the file. */
  readonly offset: number;
}

/** Problems of rows with one another; an earlier row is named by its line. */
export function resourceProblems(read: readonly ReadResource[], source: ListSource): Problem[] {
  const problems: Problem[] = [];
  const overlaps = createOverlaps();
  const byText = new Map<string, ProtectedResource>();
  const byShape = new Map<string, ProtectedResource>();
  for (const one of read) {
    const { row, path, offset } = one;
    const shape = `${row.method} ${templateShape(path, foldSegment)}`;
    const same = byText.get(resourceId(row));
    const route = byShape.get(shape);
    if (same) {
      problems.push(source.problemAt(offset, `the same row stands in line ${same.source.line}`));
    } else if (route) {
      const text = `the same route as ${resourceId(route)} in line ${route.source.line}: a request meets both`;
      problems.push(source.problemAt(offset, text, 'warning'));
    } else {
      const other = overlaps.add(row, path);
      if (other) {
        const text = `overlaps with ${resourceId(other)} in line ${other.source.line}: a request may meet both`;
        problems.push(source.problemAt(offset, text, 'warning'));
      }
      byShape.set(shape, row);
    }
    byText.set(resourceId(row), row);
  }
  return problems;
}
