import { vi } from 'vitest';
import { runCommandLine } from '../../../src/cli/command-line.ts';

export interface Printed {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Runs a command line in this process, with the parser, streams and exit code of `main.ts`: starting a process takes a
 * third of a second of CPU. Never call it concurrently: a process has one working directory.
 */
export async function runHere(
  words: readonly string[],
  { cwd = process.cwd(), env = {} }: { cwd?: string; env?: Readonly<Record<string, string>> } = {},
): Promise<Printed> {
  const printed = { stdout: '', stderr: '' };
  const streams = (['stdout', 'stderr'] as const).map((name) =>
    vi.spyOn(process[name], 'write').mockImplementation((text) => {
      printed[name] += text;
      return true;
    }),
  );
  const before = { cwd: process.cwd(), exitCode: process.exitCode, heard: process.stdout.listeners('error') };
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
  process.chdir(cwd);
  process.exitCode = undefined;
  try {
    await runCommandLine([process.execPath, 'shopward', ...words]);
    return { code: Number(process.exitCode ?? 0), ...printed };
  } finally {
    process.exitCode = before.exitCode;
    process.chdir(before.cwd);
    vi.unstubAllEnvs();
    for (const stream of streams) stream.mockRestore();
    for (const listener of process.stdout.listeners('error')) {
      if (!before.heard.includes(listener)) process.stdout.off('error', listener as () => void);
    }
  }
}
