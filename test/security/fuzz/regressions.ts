import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Failure } from './fuzz-target.ts';

/** An input that once failed. */
export interface Regression {
  readonly target: string;
  readonly input: unknown;
  /** What was wrong. */
  readonly note: string;
}

const folder = path.join(import.meta.dirname, 'regressions');

export function readRegressions(): Regression[] {
  const files = readdirSync(folder).filter((name) => name.endsWith('.json'));
  return files.map((name) => JSON.parse(readFileSync(path.join(folder, name), 'utf8')) as Regression);
}

/** Writes a failing input to a file, and returns its path. */
export function keepRegression(target: string, { input, error }: Failure): string {
  const digest = createHash('sha256').update(JSON.stringify(input)).digest('hex').slice(0, 8);
  const file = path.join(folder, `${target}-${digest}.json`);
  const note = error.split('\n', 1)[0] ?? '';
  const regression: Regression = { target, input, note };
  writeFileSync(file, `${JSON.stringify(regression, undefined, 2)}\n`);
  return file;
}
