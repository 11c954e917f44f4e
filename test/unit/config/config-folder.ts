import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { onTestFinished, type TestContext } from 'vitest';
import { loadConfig } from '../../../src/config/load.ts';
import type { FileValidators } from '../../../src/config/named-files.ts';
import { formatProblem } from '../../../src/lib/problem.ts';

/** A folder for one test, removed when the test ends. `test`: the context of a concurrent test. */
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

/** The smallest valid configuration. */
export const keys = 'auth: { keys: { jwks: "https://shop.example/jwks.json" } }';

interface Given {
  readonly files?: Readonly<Record<string, string | Uint8Array>>;
  readonly env?: Readonly<Record<string, string>>;
  readonly validators?: FileValidators;
  /** The context of a concurrent test. */
  readonly test?: TestContext;
}

/** Loads `c.yaml`, with a protected list beside it that is not checked. */
export function loadText(
  text: string | Uint8Array,
  { files = {}, env = {}, validators = {}, test }: Given = {},
) {
  const cwd = makeFolder({ 'protected-resources.yaml': 'groups: {}\n', ...files, 'c.yaml': text }, test);
  return loadConfig({ file: 'c.yaml', env, cwd, validators });
}

/** Like loadText; returns all problems as they are printed. */
export async function problemLines(text: string | Uint8Array, given: Given = {}): Promise<string[]> {
  const result = await loadText(text, given);
  return ('problems' in result ? result.problems : result.warnings).map(formatProblem);
}

/** Like loadText; returns the configuration, or fails the test. */
export async function loadGood(text: string, given: Given = {}) {
  const result = await loadText(text, given);
  if ('problems' in result) throw new Error(result.problems.map(formatProblem).join('\n'));
  return result;
}
