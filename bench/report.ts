import type { Row } from './measure.ts';

/** A Markdown table of one case; the ratio is of CPU to the row named `against`. */
export function toMarkdown(title: string, rows: readonly Row[], against: string): string {
  const base = rows.find((row) => row.name === against)?.cpu.median ?? Number.NaN;
  const lines = rows.map((row) =>
    [
      row.name,
      `${row.cpu.median.toFixed(1)} (${row.cpu.least.toFixed(1)}-${row.cpu.most.toFixed(1)})`,
      (row.cpu.median / base).toFixed(2),
      row.perSecond.toFixed(0),
      row.latencyMs.p50.toFixed(2),
      row.latencyMs.p99.toFixed(2),
      row.latencyMs.p999.toFixed(2),
      row.peakMemoryMiB.toFixed(0),
      row.errors,
    ].join(' | '),
  );
  return [
    `### ${title}`,
    '',
    `| proxy | CPU us/request (spread) | x ${against} | requests/s | p50 ms | p99 ms | p99.9 ms | peak MiB | errors |`,
    '|---|---|---|---|---|---|---|---|---|',
    ...lines.map((line) => `| ${line} |`),
    '',
  ].join('\n');
}
