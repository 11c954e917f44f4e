import { existsSync, globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { isolated, measures, slow } from '../../projects.ts';

const root = path.join(import.meta.dirname, '../../..');
/** Modules that start stores or browsers. */
const heavy = ['redis-processes', 'redis-server', 'chromium'].map((name) => `test/harness/${name}.ts`);

/** File -> its own imports; undefined: there is no such file. Kept, because many files import the same ones. */
const imports = new Map<string, readonly string[] | undefined>();

function importsOf(file: string): readonly string[] | undefined {
  if (!imports.has(file)) imports.set(file, readImports(file));
  return imports.get(file);
}

function readImports(file: string): readonly string[] | undefined {
  if (!existsSync(path.join(root, file))) return undefined;
  const text = readFileSync(path.join(root, file), 'utf8');
  const clauses = text.matchAll(/^(?:import (?!type )|export )[^;]*? from '(\.[^']+)';/gm);
  return [...clauses].map(([, to = '']) => path.join(path.dirname(file), to));
}

/** A file and all modules of this repository that it imports at its start. */
function withImports(file: string, seen = new Set<string>()): Set<string> {
  const its = importsOf(file);
  if (its === undefined || seen.has(file)) return seen;
  seen.add(file);
  for (const one of its) withImports(one, seen);
  return seen;
}

it('no quick test starts a store or a browser', () => {
  const isLeftOut = (file: string) =>
    [...slow, ...isolated, ...measures].some((pattern) => path.matchesGlob(file, pattern));
  const all = globSync('test/**/*.test.ts', { cwd: root });
  const quick = all.filter((file) => !isLeftOut(file));
  expect(quick.length).toBeGreaterThan(100);
  const wrong = quick.filter((file) => heavy.some((one) => withImports(file).has(one)));
  expect(wrong).toEqual([]);
  // The search does follow imports.
  expect(withImports('test/unit/redis/claims.test.ts')).toContain('test/harness/redis-processes.ts');
});

it('each pattern matches an existing file', () => {
  const gone = [...slow, ...isolated, ...measures].filter(
    (pattern) => globSync(pattern, { cwd: root }).length === 0,
  );
  expect(gone).toEqual([]);
});
