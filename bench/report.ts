import type { Findings } from '../scripts/results.ts';
import { describeTarget, type Verdict } from './case.ts';
import { cpuRatio, type Row } from './measure.ts';

export interface CaseResult {
  readonly name: string;
  readonly connections: number;
  readonly rows: readonly Row[];
  readonly verdicts: readonly Verdict[];
  readonly leftOut: readonly string[];
}

/** A table for each case; `x` is a row's CPU time relative to the first row: the median of the ratios of all rounds. */
export function toMarkdown({ name, connections, rows, leftOut }: CaseResult): string {
  const [first] = rows;
  const lines = rows.map((row) => {
    const ratio = first === undefined ? '' : cpuRatio(row, first).toFixed(2);
    const cells = [row.name, cpuCell(row), ratio, Math.round(row.perSecond).toLocaleString('en')];
    return `| ${[...cells, ...latencies(row), memoryCell(row)].join(' | ')} |`;
  });
  const head = [
    '| | CPU, us a request (least-most) | x | requests/s | p50, ms | p99, ms | p99.9, ms | max, ms | peak, MiB (first-last) |',
    '|---|---|---|---|---|---|---|---|---|',
  ];
  return [
    `**${name}**, ${connections} connection${connections === 1 ? '' : 's'}`,
    '',
    ...(rows.length === 0 ? [] : [...head, ...lines, '']),
    ...rows.flatMap((row) => errorsLine(row) ?? []),
    ...leftOut.map((what) => `Left out: ${what}.\n`),
  ].join('\n');
}

/** The promises of all cases, with their results. */
export function promisesToMarkdown(results: readonly CaseResult[]): string {
  const lines = results.flatMap(({ name, verdicts }) =>
    verdicts.map(
      (one) =>
        `| ${name} | ${one.row}: ${describeTarget(one)} | ${measuredValue(one)} | ${one.isMet ? 'met' : '**missed**'} |`,
    ),
  );
  return ['| case | promise | measured | |', '|---|---|---|---|', ...lines, ''].join('\n');
}

/** The promises of all cases, and the figures of shopward's own rows. */
export function findingsOf(
  results: readonly CaseResult[],
): Pick<Findings, 'promises' | 'figures' | 'details'> {
  return {
    promises: results.flatMap(({ name, verdicts }) =>
      verdicts.map((one) => ({
        promise: `${name}: ${one.row === 'shopward' ? '' : `${one.row}, `}${describeTarget(one)}`,
        measured: measuredValue(one),
        isMet: one.isMet,
      })),
    ),
    figures: results.flatMap(({ name, rows }) =>
      rows
        .filter((row) => row.name === 'shopward' && !name.startsWith('latency'))
        .map(
          (row) =>
            [
              name,
              `${microseconds(row.cpu.median)} us of CPU, p99 ${row.latencyMs.p99.toFixed(1)} ms`,
            ] as const,
        ),
    ),
    details: results.map(({ name, connections, rows }) => ({ name, connections, rows })),
  };
}

function measuredValue({ of, value }: Verdict): string {
  return value.toFixed(of === 'added' || of === 'peak' ? 0 : 2);
}

/** Formats with three significant digits: 33.5, 150. */
function microseconds(value: number): string {
  return value.toFixed(value < 100 ? 1 : 0);
}

function cpuCell({ cpu }: Row): string {
  const [least, most] = [Math.min(...cpu.rounds), Math.max(...cpu.rounds)];
  return `${microseconds(cpu.median)} (${microseconds(least)}-${microseconds(most)})`;
}

function latencies({ latencyMs: { p50, p99, p999, max } }: Row): string[] {
  return [p50.toFixed(2), ...[p99, p999, max].map((ms) => ms.toFixed(1))];
}

function memoryCell({ memoryMiB: { peak, first, last } }: Row): string {
  return `${peak.toFixed(0)} (${first.toFixed(0)}-${last.toFixed(0)})`;
}

function errorsLine({ name, errors, errorKinds }: Row): string | undefined {
  if (errors === 0) return undefined;
  const kinds = Object.entries(errorKinds).map(([kind, times]) => `${times} x ${kind}`);
  return `**${name}: ${errors} wrong answers${kinds.length === 0 ? '' : ` (${kinds.join(', ')})`}: this run is worthless.**\n`;
}
