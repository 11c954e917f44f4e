import { execFileSync } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
} from 'node:fs';
import path from 'node:path';
import type { TestProject } from 'vitest/node';

const root = path.join(import.meta.dirname, '../..');
/** Of what is built, and of what lies beside `dist` in the package. */
const sources = [
  'src/**',
  'scripts/{build,arguments}.ts',
  'package{,-lock}.json',
  'config/**',
  'docs/reasons.md',
];

/**
 * Vitest's global set-up of those who start hundreds of processes: they start what is shipped, `npm run build`, whose start
 * takes less CPU than one from the sources. `npm run test:quick` and the watch mode start the sources.
 */
export default function setUp({ vitest }: TestProject): void {
  if (!vitest.config.watch) process.env.SHOPWARD_BUILT = build();
}

/** What a process is started with. */
export function findMain(): string {
  return process.env.SHOPWARD_BUILT ?? path.join(root, 'src/main.ts');
}

/** Where it keeps what it has compiled: with what is built, so that both go together. */
export function compiledFolder(): string | undefined {
  const built = process.env.SHOPWARD_BUILT;
  return built === undefined ? process.env.NODE_COMPILE_CACHE : path.join(built, '../../compiled');
}

/**
 * The built `main.js`, in a folder named by its sources: it is never older than they are, and two that run at a time
 * write the same.
 */
function build(): string {
  const files = globSync(sources, { cwd: root, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(root, path.join(entry.parentPath, entry.name)))
    .toSorted();
  const hash = createHash('sha256');
  for (const file of files) hash.update(`${file}\0`).update(readFileSync(path.join(root, file)));
  const cache = path.join(root, 'node_modules/.cache/shopward');
  const folder = path.join(cache, hash.digest('hex').slice(0, 20));
  if (!existsSync(folder)) {
    const draft = path.join(cache, randomUUID());
    mkdirSync(draft, { recursive: true });
    for (const name of ['package.json', 'config', 'docs/reasons.md']) {
      cpSync(path.join(root, name), path.join(draft, name), { recursive: true });
    }
    const args = ['scripts/build.ts', '--to', path.join(draft, 'dist')];
    execFileSync(process.execPath, args, { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] });
    try {
      renameSync(draft, folder);
    } catch (fault) {
      if (!existsSync(folder)) throw fault;
      rmSync(draft, { recursive: true });
    }
    removeOld(cache);
  }
  utimesSync(folder, new Date(), new Date());
  return path.join(folder, 'dist/main.js');
}

/** Sources change often; what no run has asked for within an hour is not in use. */
function removeOld(cache: string): void {
  for (const name of readdirSync(cache)) {
    const folder = path.join(cache, name);
    if (Date.now() - statSync(folder).mtimeMs > 3_600_000) rmSync(folder, { recursive: true, force: true });
  }
}
