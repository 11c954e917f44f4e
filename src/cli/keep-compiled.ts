import { lstatSync, mkdirSync } from 'node:fs';
import { constants, enableCompileCache } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * Keeps what V8 makes of the program's files beside them, for the next start. What is kept runs as code, so it is kept only in a
 * folder that is this user's alone, beside a program that is this user's: on a read-only file system, or where another
 * user installed it, nothing is kept, by root neither. Node writes it at a clean stop, and reads none of it that does not fit
 * its own version and the text of the file. An operator's own `NODE_COMPILE_CACHE` goes first.
 */
export function keepCompiled(folder = fileURLToPath(new URL('../compiled', import.meta.url))): void {
  const { NODE_COMPILE_CACHE, NODE_DISABLE_COMPILE_CACHE } = process.env;
  // In a clone, do not write into `src`.
  const isBuilt = import.meta.url.endsWith('.js');
  if (!isBuilt || NODE_COMPILE_CACHE || NODE_DISABLE_COMPILE_CACHE || !canKeep(folder)) return;
  const { status } = enableCompileCache(folder);
  // Workers are processes of their own, with files of their own.
  if (status === constants.compileCacheStatus.ENABLED) process.env.NODE_COMPILE_CACHE = folder;
}

const writableByOthers = 0o022;
/** Node makes folders in it with the rights of its umask, so other users must not get that far. */
const openToOthers = 0o077;

/** Whether the folder, which is made if it can be, is this user's alone. */
function canKeep(folder: string): boolean {
  if (!isOwn(path.dirname(folder), writableByOthers)) return false;
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (fault) {
    if ((fault as NodeJS.ErrnoException).code !== 'EEXIST') return false;
  }
  return isOwn(folder, openToOthers);
}

function isOwn(folder: string, forbidden: number): boolean {
  // A link is no folder: where it leads to may be another's.
  const found = lstatSync(folder, { throwIfNoEntry: false });
  return found?.isDirectory() === true && found.uid === process.geteuid?.() && (found.mode & forbidden) === 0;
}
