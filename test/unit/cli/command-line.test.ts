import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { runHere } from './command-line-here.ts';

const root = path.join(import.meta.dirname, '../../..');

describe('a command line', () => {
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
