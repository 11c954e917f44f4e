/**
 * Puts one fault at a time into a copy of the tree and runs the tests that should fail:
 *
 *     npm run mutants -- --files 'src/http/**' --minutes 30 --seed 1
 *
 * Exits 1 when the tests notice fewer than nine in ten.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { cpSync, globSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { readArguments } from '../../../scripts/arguments.ts';
import { writeResult } from '../../../scripts/results.ts';
import { slow } from '../../projects.ts';
import { createRandom } from '../../resilience/hunt/random.ts';
import { applyMutation, findMutations, type Mutation } from './mutations.ts';

/** The folders whose code decides about requests. */
const deciding =
  'src/{proxy,http,access,entity-tags,refresh-tokens,url-resolver,rate-limits,upstream,server,redis,config,lib,app,admin}/**/*.ts';

/** Tests of the running process that check a folder's code, beside all tests of its folder; each is a part of a path. */
const throughTheProcess: Readonly<Record<string, readonly string[]>> = {
  http: ['attacks/p', 'attacks/h', 'attacks/corpus'],
  access: ['attacks/j', 'attacks/corpus', 'end-to-end/access-tokens.test'],
  proxy: ['attacks/corpus', 'end-to-end/wiring', 'end-to-end/observe'],
  server: ['attacks/h', 'attacks/x', 'end-to-end/drain'],
  upstream: ['attacks/f', 'attacks/h'],
  'entity-tags': ['end-to-end/entity-tag'],
  'refresh-tokens': ['end-to-end/refresh-tokens', 'end-to-end/token'],
  'url-resolver': ['end-to-end/url-resolver'],
  redis: ['end-to-end/shared-store'],
  config: ['end-to-end/wiring', 'end-to-end/bad-start'],
  lib: ['unit/config', 'unit/redis'],
  app: ['end-to-end/wiring', 'end-to-end/bad-start'],
  cli: ['end-to-end/docs/pages'],
  cluster: ['end-to-end/workers', 'end-to-end/stuck'],
  telemetry: ['end-to-end/wiring'],
};

/** Groups of tests, the quickest first. A mutant that passes one group goes to the next. */
const names = {
  own: 'its own tests',
  folder: 'tests of its folder',
  types: 'the compiler',
  slow: 'slow tests of its own',
  importers: 'tests that import it',
  process: 'tests of the running process',
};
type Group = keyof typeof names;
const groups = Object.keys(names) as Group[];

/** A mutant counts as noticed if the tests run longer than four times their usual time plus this. */
const patienceMs = 60_000;
/** Limit for tests that run without a mutant. */
const baselineMs = 1_200_000;

const { files, minutes, count, seed, ask } = readArguments<{
  readonly files: string;
  readonly minutes: number;
  readonly count: number;
  readonly seed: number;
  readonly ask: Group;
}>({
  name: 'npm run mutants --',
  about:
    'Puts faults into a copy of the tree, one at a time; exits with 1 when the tests notice fewer than nine in ten.',
  options: [
    ['--files <glob>', 'which source files are changed', deciding],
    ['--minutes <n>', 'start no mutant after this time', 30],
    ['--count <n>', 'try at most this many mutants', 100],
    ['--seed <n>', 'seed of the random choice of mutants', Date.now() % 100_000],
    ['--ask <group>', 'the last group of tests to run', 'process', groups],
  ],
});

interface Mutant extends Mutation {
  readonly file: string;
}

const root = path.join(import.meta.dirname, '../../..');
const folderOf = (file: string) => file.split('/')[1] ?? '';
const describeMutant = ({ file, line, before, after }: Mutant) =>
  `${file}:${line}: ${shorten(before)} -> ${shorten(after) || '(nothing)'}`;

// Everything is read from the copy, so edits of the checkout do not affect the run.
const tree = copyTree();
const compiled = path.join(tree, 'node_compiled');
const mutants: Mutant[] = globSync(files, { cwd: tree })
  .filter((file) => file.endsWith('.ts'))
  .toSorted()
  .flatMap((file) =>
    findMutations(readFileSync(path.join(tree, file), 'utf8')).map((mutation) => ({ file, ...mutation })),
  );
const chosen = createRandom(seed).shuffle(mutants).slice(0, count);
console.log(`${chosen.length} of ${mutants.length} mutants, seed ${seed}, at most ${minutes} minutes`);

let running: ChildProcess | undefined;
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    stop();
    rmSync(tree, { recursive: true, force: true });
    process.exit(130);
  });
}
const survivors: Mutant[] = [];
const noticedBy: Partial<Record<Group, number>> = {};
/** How long each command takes without a mutant, by its arguments. */
const usualMs = new Map<string, number | undefined>();
let tried = 0;
try {
  const until = Date.now() + minutes * 60_000;
  for (const mutant of chosen) {
    if (Date.now() > until) break;
    const noticed = await notice(mutant);
    tried += 1;
    if (noticed === undefined) survivors.push(mutant);
    else noticedBy[noticed] = (noticedBy[noticed] ?? 0) + 1;
    console.log(
      `${noticed === undefined ? 'SURVIVED' : `noticed (${names[noticed]})`} ${describeMutant(mutant)}`,
    );
  }
} finally {
  stop();
  rmSync(tree, { recursive: true, force: true });
}
for (const mutant of survivors) console.log(`survived: ${describeMutant(mutant)}`);
const shares = groups.flatMap((group) => (noticedBy[group] ? `${noticedBy[group]} by ${names[group]}` : []));
console.log(
  `${files}, seed ${seed}: ${tried} of ${mutants.length} tried, ${tried - survivors.length} noticed (${shares.join(', ')}), ${survivors.length} survived`,
);
if (files === deciding && tried >= 20) {
  writeResult('mutants', {
    title: 'Faults put into the code on purpose',
    command: `npm run mutants -- --seed ${seed} --ask ${ask}`,
    promises: [
      {
        promise: 'mutants: the tests notice nine in ten',
        measured: `${tried - survivors.length} of ${tried}`,
        isMet: survivors.length * 10 <= tried,
      },
    ],
    details: { noticedBy, survivors: survivors.map(describeMutant) },
  });
}
process.exitCode = survivors.length * 10 > tried ? 1 : 0;

/** Returns the first group that noticed the mutant; undefined: it survived. */
async function notice(mutant: Mutant): Promise<Group | undefined> {
  const file = path.join(tree, mutant.file);
  const source = readFileSync(file, 'utf8');
  const mutated = applyMutation(source, mutant);
  try {
    for (const group of groups.slice(0, groups.indexOf(ask) + 1)) {
      const command = commandOf(group, mutant.file);
      if (command === undefined) continue;
      writeFileSync(file, source);
      const usual = await measure(command);
      if (usual === undefined) continue;
      writeFileSync(file, mutated);
      if ((await run(command, usual * 4 + patienceMs)) !== 'green') return group;
    }
    return undefined;
  } finally {
    writeFileSync(file, source);
  }
}

/** A script and its arguments; undefined: the group has no tests for this file. */
function commandOf(group: Group, file: string): readonly string[] | undefined {
  const folder = folderOf(file);
  switch (group) {
    case 'own':
    case 'slow': {
      const isSlow = group === 'slow';
      const own = ownTestsOf(file).filter(
        (test) => slow.some((pattern) => path.matchesGlob(test, pattern)) === isSlow,
      );
      return own.length === 0 ? undefined : vitest('run', ...own, '--project', isSlow ? 'slow' : 'quick');
    }
    case 'folder':
      return vitest('run', `test/unit/${folder}/`, '--project', 'quick');
    case 'types':
      return [
        bin('typescript/bin/tsc'),
        '--noEmit',
        '--incremental',
        '--tsBuildInfoFile',
        `${compiled}/types`,
      ];
    case 'importers':
      return vitest('related', file, '--run', '--project', 'quick');
    case 'process':
      return vitest('run', `test/unit/${folder}/`, ...(throughTheProcess[folder] ?? []));
  }
}

function vitest(...args: readonly string[]): readonly string[] {
  const once = ['--bail=1', '--maxWorkers=1', '--reporter=dot', '--passWithNoTests'];
  // Modules that have not changed since the run before are not compiled again.
  return [bin('vitest/vitest.mjs'), ...args, ...once, '--fsModuleCache', `--fsModuleCachePath=${compiled}`];
}

function bin(script: string): string {
  return path.join(root, 'node_modules', script);
}

/** The tests whose name begins as the file's does, and those that import the file directly. */
function ownTestsOf(file: string): readonly string[] {
  const name = path.basename(file, '.ts');
  return globSync('test/**/*.test.ts', { cwd: tree })
    .filter((test) => path.basename(test).startsWith(name) || textOf(test).includes(`../${file}'`))
    .toSorted();
}

function textOf(test: string): string {
  return readFileSync(path.join(tree, test), 'utf8');
}

/** Milliseconds without a mutant. Undefined: the tests fail twice even without one, so they say nothing about mutants. */
async function measure(command: readonly string[]): Promise<number | undefined> {
  const key = command.slice(1).join(' ');
  if (!usualMs.has(key)) {
    usualMs.set(key, (await measureOnce(command)) ?? (await measureOnce(command)));
    if (usualMs.get(key) === undefined) console.log(`left out, red without a mutant: ${key}`);
  }
  return usualMs.get(key);
}

async function measureOnce(command: readonly string[]): Promise<number | undefined> {
  const start = performance.now();
  return (await run(command, baselineMs)) === 'green' ? performance.now() - start : undefined;
}

function run(command: readonly string[], withinMs: number): Promise<'green' | 'red' | 'late'> {
  const child = spawn(process.execPath, command, {
    cwd: tree,
    stdio: 'ignore',
    detached: true,
    env: { ...process.env, NODE_COMPILE_CACHE: compiled },
  });
  running = child;
  return new Promise((resolve) => {
    let isLate = false;
    const late = setTimeout(() => {
      isLate = true;
      stop();
    }, withinMs);
    child.once('exit', (code) => {
      clearTimeout(late);
      stop();
      resolve(isLate ? 'late' : code === 0 ? 'green' : 'red');
    });
  });
}

/** Ends the running command and the processes that it has started. */
function stop(): void {
  if (running?.pid === undefined) return;
  try {
    process.kill(-running.pid, 'SIGKILL');
  } catch {
    // They have ended already.
  }
  running = undefined;
}

/** Copies the files that git would add, uncommitted changes included. Mutants are written to the copy only. */
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
