import { readFileSync, writeFileSync } from 'node:fs';
import { describeTarget, type Verdict } from './case.ts';
import { cpuRatio, type Row } from './measure.ts';

export interface CaseResult {
  readonly name: string;
  readonly connections: number;
  readonly rows: readonly Row[];
  readonly verdicts: readonly Verdict[];
  readonly leftOut: readonly string[];
}

/** One table a case; `x` is the CPU of a row over that of the first row, the median of the ratios round by round. */
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

/** What was promised, and what came of it, of all cases. */
export function promisesToMarkdown(results: readonly CaseResult[]): string {
  const lines = results.flatMap(({ name, verdicts }) =>
    verdicts.map((one) => {
      const value = one.of === 'added' || one.of === 'peak' ? one.value.toFixed(0) : one.value.toFixed(2);
      return `| ${name} | ${one.row}: ${describeTarget(one)} | ${value} | ${one.isMet ? 'met' : '**missed**'} |`;
    }),
  );
  return ['| case | promise | measured | |', '|---|---|---|---|', ...lines, ''].join('\n');
}

/** Puts both in their places on a page: between `<!-- promises -->`, or `<!-- tables -->`, and `<!-- end -->`. */
export function writePage(file: string, about: string, results: readonly CaseResult[]): void {
  const parts = {
    promises: promisesToMarkdown(results),
    tables: [`${about}\n`, ...results.map(toMarkdown)].join('\n'),
  };
  let page = readFileSync(file, 'utf8');
  for (const [name, text] of Object.entries(parts)) {
    const place = new RegExp(`(<!-- ${name} -->\n)[^]*?(?=<!-- end -->)`);
    if (!place.test(page)) throw new Error(`${file} has no place for ${name}`);
    page = page.replace(place, (_, mark: string) => `${mark}\n${text}\n`);
  }
  writeFileSync(file, page);
}

/** With leading digits only: 33.5, 150. */
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
