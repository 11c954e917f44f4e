import { lstatSync, mkdirSync } from 'node:fs';
import { constants, enableCompileCache } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * Keeps V8's compiled code of the program beside its files, for the next start. This code is executed, so it is kept only if
 * this user owns the program's folder and the cache folder, and others can write to neither; root is no exception. Node writes
 * it at a clean stop, and ignores code of another version of Node or of a file. An operator's own `NODE_COMPILE_CACHE` takes
 * precedence.
 */
export function keepCompiled(folder = fileURLToPath(new URL('../compiled', import.meta.url))): void {
  const { NODE_COMPILE_CACHE, NODE_DISABLE_COMPILE_CACHE } = process.env;
  // In a clone, do not write into `src`.
  const isBuilt = import.meta.url.endsWith('.js');
  if (!isBuilt || NODE_COMPILE_CACHE || NODE_DISABLE_COMPILE_CACHE || !canKeep(folder)) return;
  const { status } = enableCompileCache(folder);
  // Worker processes compile files of their own, and inherit the variable.
  if (status === constants.compileCacheStatus.ENABLED) process.env.NODE_COMPILE_CACHE = folder;
}

const writableByOthers = 0o022;
/** Node creates subfolders with the rights of its umask, so other users must not get this far. */
const openToOthers = 0o077;

/** Whether the folder, created if it is missing, belongs to this user alone. */
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
  // A link does not count as a folder: its target may be another user's.
  const found = lstatSync(folder, { throwIfNoEntry: false });
  return found?.isDirectory() === true && found.uid === process.geteuid?.() && (found.mode & forbidden) === 0;
}
