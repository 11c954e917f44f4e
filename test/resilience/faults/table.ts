import type { RowResult } from './fault-row.ts';
import { routeNames } from './routes.ts';
import type { Scene } from './scene.ts';

/** What clients saw, one row for each fault. */
export function formatRows(title: string, rows: readonly RowResult[]): string {
  const columns = [title, ...routeNames, 'the tag of before', 'all well after'];
  const lines = rows.map(({ name, cells, oldTag, wellAfterMs }) => [
    name,
    ...routeNames.map((route) => cells[route]),
    oldTag,
    `${(wellAfterMs / 1000).toFixed(1)} s`,
  ]);
  return formatTable(columns, lines);
}

/** The same for faults with their own columns. */
export function formatScenes(title: string, scenes: readonly Scene[]): string {
  const columns = Object.keys(scenes[0]?.seen ?? {});
  return formatTable(
    [title, ...columns],
    scenes.map(({ name, seen }) => [name, ...columns.map((column) => seen[column] ?? '')]),
  );
}

export function formatTable(columns: readonly string[], lines: readonly (readonly string[])[]): string {
  const row = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [row(columns), row(columns.map(() => '---')), ...lines.map(row)].join('\n');
}
