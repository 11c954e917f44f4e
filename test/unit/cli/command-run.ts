import type { CommandIo } from '../../../src/cli/command-io.ts';

/** Runs a command with its own streams and returns their content. */
export async function runCommand(
  run: (io: CommandIo) => Promise<number>,
  { cwd = process.cwd(), env = {} }: { cwd?: string; env?: Record<string, string> } = {},
): Promise<{ code: number; out: string[]; err: string[] }> {
  const out: string[] = [];
  const err: string[] = [];
  const code = await run({ out: (text) => out.push(text), err: (text) => err.push(text), cwd, env });
  return { code, out: out.join('\n').split('\n'), err };
}
