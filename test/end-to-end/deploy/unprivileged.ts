import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, cpSync, globSync, statSync } from 'node:fs';
import path from 'node:path';

/** User and group id of `nobody` on Debian. */
const unprivilegedId = 65_534;

/** Makes a folder and everything below it readable, and not writable, for all users. */
export function makeReadOnly(folder: string): void {
  for (const file of ['.', ...globSync('**', { cwd: folder })]) {
    const copy = path.join(folder, file);
    const { mode } = statSync(copy);
    chmodSync(copy, (mode | 0o444 | (mode & 0o100 ? 0o111 : 0)) & ~0o222);
  }
}

/** Copies `node` to where another user can run it: the repository may be in a home folder. */
export function copyNode(folder: string): string {
  const file = path.join(folder, 'node');
  cpSync(process.execPath, file, { dereference: true });
  return file;
}

/**
 * Serves as `nobody` if the tests run as root, else as the current user, without a writable home or temporary folder.
 * Resolves when it listens. `said` gives the output so far.
 */
export async function serveUnprivileged(node: string, image: string, config: string) {
  const isRoot = process.getuid?.() === 0;
  const child = spawn(node, ['dist/main.js', 'serve', '--config', config], {
    cwd: image,
    env: { HOME: image, TMPDIR: image, NODE_ENV: 'production' },
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(isRoot && { uid: unprivilegedId, gid: unprivilegedId }),
  });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (more: string) => {
      text += more;
    });
  }
  const ended = once(child, 'close').then(() => {
    throw new Error(`ended (${child.exitCode ?? child.signalCode}): ${text}`);
  });
  ended.catch(() => {});
  for (;;) {
    const port = /listening on http:\/\/127\.0\.0\.1:(\d+)/.exec(text)?.[1];
    if (port !== undefined) return { child, port: Number(port), said: () => text };
    await Promise.race([once(child.stderr, 'data'), once(child.stdout, 'data'), ended]);
  }
}
