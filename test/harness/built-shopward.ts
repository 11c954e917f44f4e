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
/** Files that decide what is built, and files that the package has beside `dist`. */
const sources = [
  'src/**',
  'scripts/{build,arguments}.ts',
  'package{,-lock}.json',
  'config/**',
  'docs/reasons.md',
];

/**
 * Vitest's global set-up for projects that start hundreds of processes. They start what `npm run build` makes, which
 * takes less CPU to start than the sources. `npm run test:quick` and the watch mode start the sources.
 */
export default function setUp({ vitest }: TestProject): void {
  if (!vitest.config.watch) process.env.SHOPWARD_BUILT = build();
}

/** The file that a process is started with. */
export function findMain(): string {
  return process.env.SHOPWARD_BUILT ?? path.join(root, 'src/main.ts');
}

/** Where the built program keeps compiled code: beside it, so that both are removed together. */
export function compiledFolder(): string | undefined {
  const built = process.env.SHOPWARD_BUILT;
  return built === undefined ? process.env.NODE_COMPILE_CACHE : path.join(built, '../../compiled');
}

/**
 * Builds `main.js` into a folder named by a digest of its sources: it is never out of date, and two builds at the same
 * time write the same files.
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

/** Sources change often. A build that no run has used for an hour is removed. */
function removeOld(cache: string): void {
  for (const name of readdirSync(cache)) {
    const folder = path.join(cache, name);
    if (Date.now() - statSync(folder).mtimeMs > 3_600_000) rmSync(folder, { recursive: true, force: true });
  }
}
