import path from 'node:path';
import { defineConfig, type TestProjectConfiguration } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Hundreds of processes of shopward start in a run: what one has compiled, the next one need not. */
process.env.NODE_COMPILE_CACHE ??= path.join(import.meta.dirname, 'node_modules/.cache/compiled');

/** They compare the cost of one thing with another's, or bytes with bytes: few others beside them. */
const measures = [
  'test/budget/**',
  'test/cost/**',
  'test/http/path-table-cost.test.ts',
  'test/server/{answer,body}-memory.test.ts',
];

/**
 * They start stores, browsers or many processes, kill them, or wait for what has a time of its own. The ones that take
 * longest come first, so that none of them is the last to end.
 */
const slow = [
  'test/hunt/hunt.test.ts',
  'test/redis/store-state.test.ts',
  'test/end-to-end/{shared-store,rolling-restart}.test.ts',
  'test/drill/**',
  'test/redis/connect-redis.test.ts',
  'test/entity-tags/model/**',
  'test/end-to-end/{workers,store-kinds,reload-under-load,contract}.test.ts',
  'test/admin/console.test.ts',
  'test/{soak,faults}/**',
  'test/attacks/{corpus,h3-queue,x10-leases-of-strangers}.test.ts',
  'test/entity-tags/{honest-users,tag-store}.test.ts',
  'test/refresh-tokens/{crashes,replicas,store-faults,store-contract,broken-protocol,record-size,token-states}.test.ts',
  'test/{end-to-end,redis,deploy,differential}/**',
  'test/upstream/{answers,big-bodies,stale-connections}.test.ts',
  'test/server/{handshake,listener-drain}.test.ts',
  'test/attacks/{f7-upstream-dies,j7-remembered-tokens,x1-slow-senders,x8-pipelining}.test.ts',
  'test/access/jwks-key-source.test.ts',
  'test/cli/{command-line,command-line-page,terminal-escapes,tokens,verify-findings}.test.ts',
  'test/url-resolver/{freshness,mapping-file,sharing}.test.ts',
  'test/harness/redis-processes.test.ts',
];

/** In the order of `slow`; what stands in none of them, as Vitest would. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => {
      const file = path.relative(import.meta.dirname, moduleId);
      const index = slow.findIndex((pattern) => path.matchesGlob(file, pattern));
      return index === -1 ? slow.length : index;
    };
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b));
  }
}

/** Slow files mostly wait, so there are more of them at once than a machine has cores. */
const atOnce = 6;

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
    sequence: { sequencer: LongestFirst },
    projects: [
      project('slow', { include: slow.map(testsOf), maxWorkers: atOnce }),
      project('quick', {
        include: ['test/**/*.test.ts'],
        exclude: [...slow, ...measures],
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
