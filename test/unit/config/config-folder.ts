import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { onTestFinished, type TestContext } from 'vitest';
import { loadConfig } from '../../../src/config/load.ts';
import type { FileValidators } from '../../../src/config/named-files.ts';
import { formatProblem } from '../../../src/lib/problem.ts';

/** `test`: which one, where several run at a time. A folder of its own for one test, gone when the test is over. */
export function makeFolder(
  files: Readonly<Record<string, string | Uint8Array>> = {},
  test: Pick<TestContext, 'onTestFinished'> = { onTestFinished },
): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'shopward-config-'));
  test.onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(path.join(folder, path.dirname(name)), { recursive: true });
    writeFileSync(path.join(folder, name), content);
  }
  return folder;
}

/** The least that is valid. */
export const keys = 'auth: { keys: { jwks: "https://shop.example/jwks.json" } }';

interface Given {
  readonly files?: Readonly<Record<string, string | Uint8Array>>;
  readonly env?: Readonly<Record<string, string>>;
  readonly validators?: FileValidators;
  /** Which one loads it, where several run at a time. */
  readonly test?: TestContext;
}

/** Loads `c.yaml` beside an (unjudged) protected list. */
export function loadText(
  text: string | Uint8Array,
  { files = {}, env = {}, validators = {}, test }: Given = {},
) {
  const cwd = makeFolder({ 'protected-resources.yaml': 'groups: {}\n', ...files, 'c.yaml': text }, test);
  return loadConfig({ file: 'c.yaml', env, cwd, validators });
}

/** As loadText; all problems, as they are printed. */
export async function problemLines(text: string | Uint8Array, given: Given = {}): Promise<string[]> {
  const result = await loadText(text, given);
  return ('problems' in result ? result.problems : result.warnings).map(formatProblem);
}

/** As loadText; the configuration, or a failed test. */
export async function loadGood(text: string, given: Given = {}) {
  const result = await loadText(text, given);
  if ('problems' in result) throw new Error(result.problems.map(formatProblem).join('\n'));
  return result;
}
