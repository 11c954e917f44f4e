import { escapeToLine } from './command-io.ts';

/** Rows as lines, in columns that are as wide as their widest cell; no spaces at the ends of lines. */
export function textTable(texts: readonly (readonly string[])[]): string[] {
  const rows = texts.map((row) => row.map(escapeToLine));
  const widths: number[] = [];
  for (const row of rows) {
    for (const [i, cell] of row.entries()) widths[i] = Math.max(widths[i] ?? 0, cell.length);
  }
  return rows.map((row) =>
    row
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}
