import type { Verdict } from './case.ts';
import { cpuRatio, type Row } from './measure.ts';

export interface CaseResult {
  readonly name: string;
  readonly connections: number;
  readonly rows: readonly Row[];
  readonly verdicts: readonly Verdict[];
  readonly leftOut: readonly string[];
}

/** One table a case; `x` is the CPU of a row over that of the first row, the median of the ratios round by round. */
export function toMarkdown({ name, connections, rows, verdicts, leftOut }: CaseResult): string {
  const [first] = rows;
  const lines = rows.map((row) => {
    const cells = [row.name, cpuCell(row), first === undefined ? '' : cpuRatio(row, first).toFixed(2)];
    cells.push(row.perSecond.toFixed(0), ...latencies(row), memoryCell(row), errorsCell(row));
    return `| ${[...cells, verdictCell(row, verdicts)].join(' | ')} |`;
  });
  return [
    `### ${name} (${connections} connections)`,
    '',
    '| contestant | CPU us/request (spread) | x first | requests/s | p50 ms | p99 ms | p99.9 ms | max ms | MiB peak (first-last) | errors | target |',
    '|---|---|---|---|---|---|---|---|---|---|---|',
    ...lines,
    ...leftOut.map((what) => `\nLeft out: ${what}`),
    '',
  ].join('\n');
}

function cpuCell({ cpu }: Row): string {
  const [least, most] = [Math.min(...cpu.rounds), Math.max(...cpu.rounds)];
  return `${cpu.median.toFixed(1)} (${least.toFixed(1)}-${most.toFixed(1)})`;
}

function latencies({ latencyMs: { p50, p99, p999, max } }: Row): string[] {
  return [p50, p99, p999, max].map((ms) => ms.toFixed(2));
}

function memoryCell({ memoryMiB: { peak, first, last } }: Row): string {
  return `${peak.toFixed(0)} (${first.toFixed(0)}-${last.toFixed(0)})`;
}

function errorsCell({ errors, errorKinds }: Row): string {
  const kinds = Object.entries(errorKinds).map(([kind, times]) => `${times} x ${kind}`);
  return kinds.length === 0 ? String(errors) : `${errors} (${kinds.join(', ')})`;
}

function verdictCell(row: Row, verdicts: readonly Verdict[]): string {
  const own = verdicts.filter((one) => one.row === row.name);
  return own
    .map((one) => `${promise(one)}: ${one.value.toFixed(2)} ${one.isMet ? 'met' : 'MISSED'}`)
    .join('; ');
}

function promise({ of, most, against }: Verdict): string {
  if (of === 'added') return `<= +${most} us over ${against}`;
  if (of === 'later') return `<= +${most} ms over ${against} (p50)`;
  return `<= ${most} x ${against}${of === 'p99' || of === 'p999' ? ` (${of})` : ''}`;
}
