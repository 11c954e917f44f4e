import { textTable } from '../text-table.ts';
import type { Check } from './check.ts';

export interface Counts {
  readonly ok: number;
  readonly failed: number;
  readonly skipped: number;
}

export function countOutcomes(checks: readonly Check[]): Counts {
  const count = (outcome: Check['outcome']) => checks.filter((check) => check.outcome === outcome).length;
  return { ok: count('ok'), failed: count('failed'), skipped: count('skipped') };
}

/** A table, then what failed once more with what it means, then the counts. */
export function reportText(url: string, checks: readonly Check[]): string[] {
  const rows = checks.map(({ outcome, area, name, expected, got, advice }) => [
    outcome === 'failed' ? 'FAILED' : outcome,
    area,
    name,
    outcome === 'failed' ? `${got}, expected ${expected}` : outcome === 'skipped' ? (advice ?? '') : got,
  ]);
  const advice = adviceText(checks);
  const { ok, failed, skipped } = countOutcomes(checks);
  return [
    ...textTable(rows),
    ...(advice.length > 0 ? ['', ...advice, ''] : []),
    `${url}: ${ok} ok, ${failed} failed, ${skipped} skipped`,
  ];
}

/** What failures mean: each advice once, with the checks that it is for. */
function adviceText(checks: readonly Check[]): string[] {
  const byAdvice = new Map<string, string[]>();
  for (const { outcome, name, advice } of checks) {
    if (outcome !== 'failed' || advice === undefined) continue;
    const names = byAdvice.get(advice) ?? [];
    byAdvice.set(advice, names);
    names.push(name);
  }
  return [...byAdvice].map(([advice, [first, ...rest]]) =>
    rest.length === 0 ? `${first}: ${advice}` : `${first} and ${rest.length} more: ${advice}`,
  );
}

/** Stable: keys are only ever added. */
export function reportJson(url: string, checks: readonly Check[]): object {
  const counts = countOutcomes(checks);
  return { url, ok: counts.failed === 0, counts, checks };
}
