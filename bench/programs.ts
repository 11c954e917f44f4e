import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';

/** Starts a program bound to one processor, if the machine has several and `taskset`. */
export function startPinned(
  processor: number,
  command: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
): ChildProcess {
  const pinned = existsSync('/usr/bin/taskset')
    ? { file: '/usr/bin/taskset', args: ['-c', String(processor), command, ...args] }
    : { file: command, args: [...args] };
  const child = spawn(pinned.file, pinned.args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
  });
  running.add(child);
  child.once('exit', () => running.delete(child));
  return child;
}

const running = new Set<ChildProcess>();
const closers: (() => Promise<void>)[] = [];

/** For servers in this process: an open server would keep the process alive. */
export function closeAtEnd<T extends { close(): Promise<void> }>(server: T): T {
  closers.push(() => server.close());
  return server;
}

/** Ends every program that was started here, by id, and closes the servers in this process. */
export async function stopAll(): Promise<void> {
  const children = [...running];
  await Promise.all([
    ...children.map((child) => new Promise((resolve) => child.once('exit', resolve).kill('SIGKILL'))),
    ...closers.map((close) => close()),
  ]);
}

/** Waits for the first matching line of a child's output; discards the rest. */
export function lineOf(child: ChildProcess, pattern: RegExp): Promise<RegExpExecArray> {
  return new Promise((resolve, reject) => {
    let text = '';
    for (const stream of [child.stdout, child.stderr])
      stream?.on('data', (chunk: Buffer) => {
        if (text.length > 1e6) return;
        text += chunk.toString();
        const match = pattern.exec(text);
        if (match) resolve(match);
      });
    child.once('exit', (code) =>
      reject(new Error(`${child.spawnargs.join(' ')} ended with ${code} before it was ready:\n${text}`)),
    );
  });
}
