import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { findMain } from '../../harness/built-shopward.ts';
import { runHere } from './command-line-here.ts';

const root = path.join(import.meta.dirname, '../../..');

describe('the verb as a process', () => {
  const run = promisify(execFile);
  const shopward = (...args: string[]) =>
    run(process.execPath, [findMain(), ...args], { cwd: root }).then(
      ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
      ({ code, stdout, stderr }) => ({ code, stdout, stderr }),
    );

  it.each([
    [['protected', 'diff', 'config/protected-resources.yaml', 'config/protected-resources.hardened.yaml'], 1],
    [['protected', 'import'], 2],
    [['protected', 'diff', 'gone.yaml', 'gone.yaml'], 78],
  ])('%j exits %i', async (args, code) => {
    expect((await shopward(...args)).code).toBe(code);
  });

  it('serve --help has examples and exit codes', async () => {
    expectHelp(await shopward('serve', '--help'));
  });
});

describe('the verb in this process', () => {
  const shopward = (...args: string[]) => runHere(args, { cwd: root });

  it.each([
    [['protected', 'diff', 'config/protected-resources.yaml', 'config/protected-resources.yaml'], 0],
    [['protected', 'diff', 'config/protected-resources.yaml'], 2],
    [['--version'], 0],
    [['explain'], 2],
    [['verify', 'no-url'], 2],
    [['frob'], 2],
  ])('%j exits %i', async (args, code) => {
    expect((await shopward(...args)).code).toBe(code);
  });

  it.each(['check', 'explain', 'protected', 'verify', 'purge', 'tokens', 'health'])(
    '%s --help has examples and exit codes',
    async (verb) => {
      expectHelp(await shopward(verb, '--help'));
    },
  );
});

function expectHelp({ code, stdout }: { readonly code: number; readonly stdout: string }): void {
  expect(code).toBe(0);
  expect(stdout).toMatch(/\nExamples:\n {2}.*shopward[\s\S]*\nExit code: 0 /);
}
