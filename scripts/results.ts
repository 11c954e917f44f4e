/** Measurements as data: results/ has the latest result of each kind of run in one file; git keeps the earlier ones. */
import { execFileSync } from 'node:child_process';
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';

const root = path.join(import.meta.dirname, '..');

export interface PromiseResult {
  readonly promise: string;
  readonly measured: string;
  readonly isMet: boolean;
}

export interface Findings {
  readonly title: string;
  readonly command: string;
  readonly promises?: readonly PromiseResult[];
  readonly figures?: readonly (readonly [string, string])[];
  /** Figures that the page leaves out. */
  readonly details?: unknown;
}

export interface Result extends Findings {
  readonly date: string;
  readonly commit: string;
  readonly machine: string;
}

/** Call it only after a whole run: a partial run would delete the figures that it did not measure. */
export function writeResult(name: string, findings: Findings): void {
  const { title, command, ...rest } = findings;
  const result: Result = { title, command, ...here(), ...rest };
  const file = path.join('results', `${name}.json`);
  mkdirSync(path.join(root, 'results'), { recursive: true });
  writeFileSync(path.join(root, file), `${JSON.stringify(result, null, 2)}\n`);
  console.error(`written: ${file}; npm run docs puts it into docs/results.md`);
}

export function readResults(): readonly Result[] {
  return globSync('results/*.json', { cwd: root })
    .filter((file) => path.basename(file) !== 'reasons.json')
    .toSorted()
    .map((file) => JSON.parse(readFileSync(path.join(root, file), 'utf8')) as Result);
}

/** Why a promise is missed: written by hand, since a run cannot know the cause. */
export interface Reason {
  /** The beginning of each promise that it explains. */
  readonly promises: readonly string[];
  readonly reason: string;
}

export function readReasons(): readonly Reason[] {
  return JSON.parse(readFileSync(path.join(root, 'results/reasons.json'), 'utf8')) as Reason[];
}

function here(): Pick<Result, 'date' | 'commit' | 'machine'> {
  const git = (...args: readonly string[]) =>
    execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim();
  const isDirty = git('status', '--porcelain', '--', 'src', 'package-lock.json') !== '';
  const [load = 0] = os.loadavg();
  return {
    date: new Date().toISOString().slice(0, 10),
    commit: `${git('rev-parse', '--short=8', 'HEAD')}${isDirty ? ' with changes' : ''}`,
    machine: `${os.availableParallelism()} x ${os.cpus()[0]?.model.trim()}, Node ${process.version}, load ${load.toFixed(1)}`,
  };
}
