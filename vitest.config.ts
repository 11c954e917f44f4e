import path from 'node:path';
import { defineConfig, type TestProjectConfiguration } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { copyCompileCache } from './test/harness/compile-cache.ts';
import { isolated, measures, slow, waiting } from './test/projects.ts';

/** A run starts hundreds of processes of shopward: each reuses the code that earlier ones have compiled. */
process.env.NODE_COMPILE_CACHE ??= copyCompileCache(
  path.join(import.meta.dirname, 'node_modules/.cache/compiled'),
);

/** First the files of `slow` and `isolated` in their order, then Vitest's order; files of `waiting` alternate with them. */
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

/** Takes from both lists alternately, until one is used up. */
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

/** Tests allocate short-lived objects: a larger young generation is collected less often, also during measurements. */
const roomForYoung = ['--max-semi-space-size=64'];

/**
 * For workers that share few processors: threads that collect garbage together wait for one another. On a busy machine this
 * flag and the one below save a twentieth of the CPU of the quick tests. Processes of shopward start without them.
 */
const oneCollector = '--single-threaded-gc';

/** For workers whose tests are short: they would hardly use the code of the optimising compiler. */
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
        // Each file reuses the imports and keys of earlier files, which saves half a second of CPU.
        isolate: false,
        maxWorkers: atOnce,
        globalSetup: ['test/harness/built-shopward.ts'],
      }),
      project('quick', {
        include: ['test/**/*.test.ts'],
        exclude: [...slow, ...isolated, ...measures],
        execArgv: [oneCollector, noOptimiser],
        // Each file reuses the imports of earlier files.
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
