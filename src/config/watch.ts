import { type FSWatcher, watch } from 'node:fs';
import { stat } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type FileBytes, isSame, readOnce } from './read-file.ts';
import type { Milliseconds } from './units.ts';

export interface WatchOptions {
  /** Between two readings of the file when no event comes. Default: 2000. */
  readonly pollMs?: Milliseconds;
  /** Pause between two reads that must agree before a change is reported. Default: 100. */
  readonly settleMs?: Milliseconds;
  /** One reading of the file. Default: its content up to 16 MiB; `readStamp` for files too large to be compared. */
  readonly read?: (path: string) => Promise<FileBytes>;
  /** What is in effect already; a file that differs from it is reported at once. Default: what the first reading finds. */
  readonly known?: Buffer;
}

export interface FileWatch {
  /** Checks now (SIGHUP). */
  reload(): void;
  /** No change is reported after this. */
  close(): void;
}

const readContent = (path: string) => readOnce(path, 16 * 1024 * 1024);

/**
 * Reports the new content of a file, or why it cannot be read, after every change of its content. Rename-over, writes in
 * place, delete and create, and symlinks that are swapped above it (`..data` of a ConfigMap) are all the same to it:
 * the directory's events only hasten a reading, and one every `pollMs` also serves bind mounts and network file
 * systems that report nothing. Changes are reported one after the other; the last content always is. `onChange` must not throw.
 */
export function watchFile(
  path: string,
  onChange: (content: FileBytes) => void,
  options: WatchOptions = {},
): FileWatch {
  const { pollMs = 2000, settleMs = 100, read = readContent } = options;
  let known: FileBytes | undefined = options.known && { bytes: options.known };
  let directory: { readonly watcher: FSWatcher; readonly inode: bigint } | undefined;
  let checking = false;
  let checkAgain = false;
  let closed = false;

  const timer = setInterval(() => void check(), pollMs).unref();
  void check();
  return {
    reload: () => void check(),
    close: () => {
      closed = true;
      clearInterval(timer);
      directory?.watcher.close();
    },
  };

  async function check(): Promise<void> {
    checkAgain = true;
    if (checking) return;
    checking = true;
    while (checkAgain && !closed) {
      checkAgain = false;
      await watchDirectory();
      await compare();
    }
    checking = false;
  }

  async function compare(): Promise<void> {
    let seen = await read(path);
    while (!closed && known !== undefined && !isSame(seen, known)) {
      await sleep(settleMs, undefined, { ref: false });
      const next = await read(path);
      if (isSame(next, seen)) {
        known = seen;
        if (!closed) onChange(seen);
        return;
      }
      seen = next;
    }
    known ??= seen;
  }

  /** Watches the directory under the path's name, also when another one has taken its place. */
  async function watchDirectory(): Promise<void> {
    const inode = await stat(dirname(path), { bigint: true }).then(
      ({ ino }) => ino,
      () => undefined,
    );
    if (closed || (directory !== undefined && inode === directory.inode)) return;
    directory?.watcher.close();
    directory = inode === undefined ? undefined : startWatching(inode);
  }

  function startWatching(inode: bigint): typeof directory {
    try {
      const watcher = watch(dirname(path), { persistent: false }, (_event, name) => {
        if (name === null || name === basename(path) || name.startsWith('..')) void check();
      });
      watcher.on('error', () => {
        watcher.close();
        directory = undefined;
      });
      return { watcher, inode };
    } catch {
      // No watch to be had (limits of the platform): the readings at intervals remain.
      return undefined;
    }
  }
}
