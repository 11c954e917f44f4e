import { execFile } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';

const root = path.join(import.meta.dirname, '../../..');
const { scripts } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as {
  readonly scripts: Readonly<Record<string, string>>;
};
/** What `npm run` starts of this repository's own, and what has a run.ts, whether it is named there or not. */
const files = [
  ...new Set([
    ...Object.values(scripts).flatMap((command) => /^node ((?!src\/)\S+\.ts)/.exec(command)?.[1] ?? []),
    ...globSync(['bench/{run,sizing,start,url-resolver}.ts', '{test/*/*,demo}/run.ts'], { cwd: root }),
    ...['scripts/release.ts', 'scripts/sbom.ts', 'scripts/import-wycheproof.ts'],
  ]),
].toSorted();

interface Ended {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

function run(file: string, ...args: string[]): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(process.execPath, [file, ...args], { cwd: root, encoding: 'utf8' }, (fault, out, err) =>
      resolve({ code: Number(fault?.code ?? 0), out, err }),
    );
  });
}

test('there are scripts to look at', () => {
  const named = ['resilience/{hunt,drill,soak,faults}', 'security/{fuzz,cost}'].flatMap((names) =>
    globSync(`test/${names}/run.ts`, { cwd: root }),
  );
  expect(named).toHaveLength(6);
  expect(files).toEqual(expect.arrayContaining([...named, 'bench/run.ts', 'bench/sizing.ts']));
});

test.each(files)('%s says what it takes, and takes nothing else', async (file) => {
  const [help, refused] = await Promise.all([
    run(file, '--help'),
    run(file, 'no-such-word', 'nor-this-one', '--no-such-option'),
  ]);
  expect(help).toMatchObject({ code: 0, err: '' });
  expect(help.out).toMatch(/^Usage: (npm run \S+|node \S+)/);
  // Every option that its source declares is listed.
  const declared = readFileSync(path.join(root, file), 'utf8').matchAll(/\['(--[a-z]+)[ ']/g);
  for (const [, option] of declared) expect(help.out).toContain(option);
  expect(refused).toMatchObject({ code: 2, out: '' });
  expect(refused.err).toMatch(/^error: unknown option '--no-such-option'.*\n$/);
});

test.each([
  [
    'test/resilience/soak/run.ts',
    ['--minutes', 'long'],
    /^error: option '--minutes <n>' argument 'long' is invalid\. .*\n$/,
  ],
  [
    'test/resilience/hunt/run.ts',
    ['--broken', 'all'],
    /^error: option '--broken <what>' argument 'all' is invalid\. .*\n$/,
  ],
  ['test/resilience/faults/run.ts', ['moon'], /^error: no 'moon'; there are upstream, redis, .*\n$/],
  ['test/security/cost/run.ts', ['more'], /^error: too many arguments\. .*\n$/],
] as const)('%s %s is refused in one line', async (file, args, words) => {
  expect(await run(file, ...args)).toEqual({ code: 2, out: '', err: expect.stringMatching(words) });
});
