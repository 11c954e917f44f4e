import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';

const root = path.join(import.meta.dirname, '../..');

/**
 * Where processes of a test run keep compiled code (`NODE_COMPILE_CACHE`) for later ones. Node never removes an entry,
 * and a moved file gets a new one. So a run removes the caches of other package sets, and its own above `mostEntries`
 * entries (8 KB each on average; a full run of the tests makes some 4,000).
 */
export function copyCompileCache(
  folder: string,
  { lock = readFileSync(path.join(root, 'package-lock.json')), mostEntries = 12_000 } = {},
): string {
  const name = createHash('sha256').update(lock).update(process.version).digest('hex').slice(0, 12);
  const kept = path.join(folder, name);
  mkdirSync(kept, { recursive: true });
  for (const other of readdirSync(folder)) if (other !== name) remove(path.join(folder, other));
  if (readdirSync(kept, { recursive: true }).length > mostEntries) remove(kept);
  return kept;
}

/** Other processes may still write into it. The next run removes what they add. */
function remove(location: string): void {
  try {
    rmSync(location, { recursive: true, force: true });
  } catch (fault) {
    if ((fault as NodeJS.ErrnoException).code !== 'ENOTEMPTY') throw fault;
  }
}
