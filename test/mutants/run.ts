/**
 * Puts one fault at a time into a copy of the tree and runs the tests that should notice:
 *
 *     npm run mutants -- --files 'src/http/**' --minutes 30 --seed 1
 *
 * Exits 1 when fewer than nine in ten are noticed. docs/proof.md says what survived, and why.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { cpSync, globSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { readArguments } from '../../scripts/arguments.ts';
import { createRandom } from '../hunt/random.ts';
import { applyMutation, findMutations, type Mutation } from './mutations.ts';

/** The folders that decide. */
const deciding =
  'src/{proxy,http,access,entity-tags,refresh-tokens,url-resolver,upstream,server,redis,config}/**/*.ts';

/** Tests that ask a running process about what a folder decides: no import leads from them to it. */
const throughTheProcess: Readonly<Record<string, readonly string[]>> = {
  http: ['test/attacks/p', 'test/attacks/h', 'test/attacks/corpus.test.ts'],
  access: ['test/attacks/j', 'test/attacks/corpus.test.ts', 'test/end-to-end/access-tokens.test.ts'],
  proxy: ['test/attacks/corpus.test.ts', 'test/end-to-end/wiring.test.ts', 'test/end-to-end/observe.test.ts'],
  server: ['test/attacks/h', 'test/attacks/x', 'test/server', 'test/end-to-end/drain.test.ts'],
  upstream: ['test/attacks/f', 'test/attacks/h', 'test/upstream'],
  'entity-tags': ['test/entity-tags', 'test/end-to-end/entity-tag'],
  'refresh-tokens': [
    'test/refresh-tokens',
    'test/end-to-end/refresh-tokens.test.ts',
    'test/end-to-end/token',
  ],
  'url-resolver': ['test/url-resolver', 'test/end-to-end/url-resolver'],
  redis: ['test/redis', 'test/end-to-end/store-kinds.test.ts'],
  config: ['test/config', 'test/end-to-end/wiring.test.ts', 'test/end-to-end/bad-start.test.ts'],
};

/** A mutant that makes a test hang is noticed; so long is only waited for those that end. */
const patienceMs = 300_000;

const { files, minutes, count, seed } = readArguments<{
  readonly files: string;
  readonly minutes: number;
  readonly count: number;
  readonly seed: number;
}>({
  name: 'npm run mutants --',
  about:
    'Puts faults into a copy of the tree, one at a time; exits with 1 when the tests notice fewer than nine in ten.',
  options: [
    ['--files <glob>', 'where they are put', deciding],
    ['--minutes <n>', 'after which none is begun', 30],
    ['--count <n>', 'how many at most', 100],
    ['--seed <n>', 'of the choice among all that there are', Date.now() % 100_000],
  ],
});

interface Mutant extends Mutation {
  readonly file: string;
}

const root = path.join(import.meta.dirname, '../..');
const folderOf = (file: string) => file.split('/')[1] ?? '';
const describeMutant = ({ file, line, before, after }: Mutant) =>
  `${file}:${line}: ${shorten(before)} -> ${shorten(after) || '(nothing)'}`;

const mutants: Mutant[] = globSync(files, { cwd: root })
  .filter((file) => file.endsWith('.ts'))
  .toSorted()
  .flatMap((file) =>
    findMutations(readFileSync(path.join(root, file), 'utf8')).map((mutation) => ({ file, ...mutation })),
  );
const chosen = createRandom(seed).shuffle(mutants).slice(0, count);
console.log(`${chosen.length} of ${mutants.length} mutants, seed ${seed}, at most ${minutes} minutes`);

const tree = copyTree();
let running: ChildProcess | undefined;
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    stop();
    rmSync(tree, { recursive: true, force: true });
    process.exit(130);
  });
}
const survivors: Mutant[] = [];
let tried = 0;
try {
  const folders = [...new Set(chosen.map(({ file }) => folderOf(file)))];
  for (const folder of folders) {
    if ((await run(['run', `test/${folder}`, '--project', 'quick'])) === 'red') {
      console.error(`test/${folder} is red without any mutant`);
      process.exit(2);
    }
  }
  const until = Date.now() + minutes * 60_000;
  for (const mutant of chosen) {
    if (Date.now() > until) break;
    const noticed = await notice(mutant);
    tried += 1;
    if (noticed === undefined) survivors.push(mutant);
    console.log(`${noticed === undefined ? 'SURVIVED' : `noticed (${noticed})`} ${describeMutant(mutant)}`);
  }
} finally {
  stop();
  rmSync(tree, { recursive: true, force: true });
}
console.log(`\n${tried - survivors.length} of ${tried} noticed`);
for (const mutant of survivors) console.log(`survived: ${describeMutant(mutant)}`);
process.exitCode = survivors.length * 10 > tried ? 1 : 0;

/** What noticed it: the tests of its folder, those that import it, or those that ask a running process. */
async function notice(mutant: Mutant): Promise<string | undefined> {
  const file = path.join(tree, mutant.file);
  const source = readFileSync(path.join(root, mutant.file), 'utf8');
  writeFileSync(file, applyMutation(source, mutant));
  const folder = folderOf(mutant.file);
  try {
    if ((await run(['run', `test/${folder}`, '--project', 'quick'])) === 'red') return `test/${folder}`;
    if ((await run(['related', mutant.file, '--run', '--project', 'quick'])) === 'red') return 'importers';
    const asking = throughTheProcess[folder] ?? [];
    if (asking.length > 0 && (await run(['run', ...asking])) === 'red') return 'the running process';
    return undefined;
  } finally {
    writeFileSync(file, source);
  }
}

function run(args: readonly string[]): Promise<'green' | 'red'> {
  const command = [path.join(root, 'node_modules/vitest/vitest.mjs'), ...args, '--bail=1', '--reporter=dot'];
  const child = spawn(process.execPath, [...command, '--passWithNoTests'], {
    cwd: tree,
    stdio: 'ignore',
    detached: true,
  });
  running = child;
  return new Promise((resolve) => {
    const late = setTimeout(stop, patienceMs);
    child.once('exit', (code) => {
      clearTimeout(late);
      stop();
      resolve(code === 0 ? 'green' : 'red');
    });
  });
}

/** Ends what runs, and what it has started. */
function stop(): void {
  if (running?.pid === undefined) return;
  try {
    process.kill(-running.pid, 'SIGKILL');
  } catch {
    // Nothing of it is left.
  }
  running = undefined;
}

/** What git would take, as it is now: a mutant never gets near the checkout. */
function copyTree(): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'shopward-mutants-'));
  const listed = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: root,
    encoding: 'utf8',
  });
  for (const file of listed.split('\0').filter((name) => name !== '')) {
    cpSync(path.join(root, file), path.join(folder, file), { recursive: true });
  }
  symlinkSync(path.join(root, 'node_modules'), path.join(folder, 'node_modules'));
  return folder;
}

function shorten(text: string): string {
  const line = text.replace(/\s+/g, ' ');
  return line.length > 60 ? `${line.slice(0, 57)}...` : line;
}
