import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'vitest';
import { stringify } from 'yaml';
import { findProgram } from '../../harness/programs.ts';

/** The rules of Prometheus that we ship. */
export const rulesFile = path.join(import.meta.dirname, '../../../deploy/prometheus/shopward.rules.yaml');
export const rulesText = readFileSync(rulesFile, 'utf8');
export const promtool = findProgram('promtool');

/** Samples that a Prometheus could have scraped, and the alerts that must fire by then. */
export interface History {
  readonly what: string;
  /** Series -> its values in the notation of promtool, one for each interval. */
  readonly values: Readonly<Record<string, string>>;
  /** Default: 30s. */
  readonly interval?: string;
  /** Names of the alerts, some followed by the label `reason`. */
  readonly fires: readonly string[];
  /** Alerts that do not count. Default: none. */
  readonly ignores?: readonly string[];
}

interface Clock {
  /** Time between two evaluations of the rules. */
  readonly evaluation: string;
  readonly endsAt: string;
  /** The alerts of this last part of the time count. */
  readonly firingIn: string;
}

/** Lets promtool evaluate the shipped rules. The clock is promtool's: no time passes. */
export async function expectAlerts(told: readonly History[], clock: Clock): Promise<void> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'shopward-alerts-'));
  const tests = told.map(({ what, values, interval = '30s', fires, ignores = [] }) => ({
    name: what,
    interval,
    input_series: Object.entries(values).map(([series, each]) => ({ series, values: each })),
    promql_expr_test: [
      {
        expr: `group by (alertname, reason) (count_over_time(ALERTS{alertstate="firing",alertname!~"${ignores.join('|')}"}[${clock.firingIn}]))`,
        eval_time: clock.endsAt,
        exp_samples: fires.map((each) => {
          const [alertname, reason] = each.split(' ');
          return { labels: `{alertname="${alertname}"${reason ? `,reason="${reason}"` : ''}}`, value: 1 };
        }),
      },
    ],
  }));
  const file = path.join(folder, 'test.yaml');
  writeFileSync(file, stringify({ rule_files: [rulesFile], evaluation_interval: clock.evaluation, tests }));
  const said = await promisify(execFile)(promtool ?? '', ['test', 'rules', file]).then(
    () => '',
    ({ stdout, stderr }) => stdout + stderr,
  );
  rmSync(folder, { recursive: true });
  expect(said).toBe('');
}
