import path from 'node:path';
import { defineConfig, type TestProjectConfiguration } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { copyCompileCache } from './test/harness/compile-cache.ts';
import { isolated, measures, slow, waiting } from './test/projects.ts';

/** Hundreds of processes of shopward start in a run: what one has compiled, the next one need not. */
process.env.NODE_COMPILE_CACHE ??= copyCompileCache(
  path.join(import.meta.dirname, 'node_modules/.cache/compiled'),
);

/** In the order of `slow` and `isolated`, and then as Vitest would; those of `waiting` between them. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const waits = sorted.filter((file) => rankIn(waiting, file) < waiting.length);
    const computes = sorted.filter((file) => !waits.includes(file));
    return takeInTurns(byRank([...slow, ...isolated], computes), byRank(waiting, waits));
  }
}

function byRank(patterns: readonly string[], files: readonly TestSpecification[]): TestSpecification[] {
  return files.toSorted((a, b) => rankIn(patterns, a) - rankIn(patterns, b));
}

function rankIn(patterns: readonly string[], { moduleId }: TestSpecification): number {
  const file = path.relative(import.meta.dirname, moduleId);
  const index = patterns.findIndex((pattern) => path.matchesGlob(file, pattern));
  return index === -1 ? patterns.length : index;
}

/** One that computes and one that waits, as long as there are both. */
function takeInTurns<T>(computing: readonly T[], waits: readonly T[]): T[] {
  return [
    ...waits.flatMap((each, i) => [...computing.slice(i, i + 1), each]),
    ...computing.slice(waits.length),
  ];
}

/**
 * More than a machine has cores: in a run of all tests on two cores, a worker of the slow files computes for a third of its
 * time and waits for the rest.
 */
const atOnce = 6;

/** They make much and keep little: with more room for what is young, it is collected less often, also amid what is compared. */
const roomForYoung = ['--max-semi-space-size=64'];

/**
 * Of workers that share few processors: threads that collect garbage together wait for one another. It and the flag below
 * save a twentieth of the CPU of the quick tests where the machine is full. What is shipped runs in processes of its own,
 * which are started as they ship.
 */
const oneCollector = '--single-threaded-gc';

/** Of workers whose tests each run for a moment: what the optimising compiler makes is hardly used. */
const noOptimiser = '--no-turbofan';

function project(name: string, test: object): TestProjectConfiguration {
  return { extends: true, test: { name, ...test } };
}

export default defineConfig({
  test: {
    setupFiles: ['test/harness/fixed-seed.ts'],
    // Real processes and sockets on two cores: generous bounds, so that only a hang is a failure.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 30_000 } },
    pool: 'forks',
    execArgv: roomForYoung,
    sequence: { sequencer: LongestFirst },
    projects: [
      project('slow', {
        include: slow.map(testsOf),
        exclude: measures,
        execArgv: [oneCollector],
        // What one file imports, and the keys that it made, serve the next one: half a second of CPU for each.
        isolate: false,
        maxWorkers: atOnce,
        globalSetup: ['test/harness/built-shopward.ts'],
      }),
      project('quick', {
        include: ['test/**/*.test.ts'],
        exclude: [...slow, ...isolated, ...measures],
        execArgv: [oneCollector, noOptimiser],
        // What one file imports serves the next one.
        isolate: false,
        maxWorkers: atOnce,
      }),
      project('isolated', {
        include: isolated.map(testsOf),
        exclude: measures,
        execArgv: [oneCollector],
        maxWorkers: atOnce,
      }),
      project('measures', {
        include: measures.map(testsOf),
        maxWorkers: 2,
        sequence: { groupOrder: 1 },
      }),
    ],
  },
});

function testsOf(pattern: string): string {
  return pattern.replace(/\*\*$/, '**/*.test.ts');
}
