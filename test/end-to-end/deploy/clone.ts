import { execFileSync } from 'node:child_process';
import { cpSync, symlinkSync } from 'node:fs';
import path from 'node:path';

/**
 * Copies what a package is made of, uncommitted changes included, because packing needs a dist folder and other tests use this
 * checkout at the same time.
 */
export function makeClone(root: string, clone: string): void {
  const listed = execFileSync('git', ['ls-files', '-coz', '--exclude-standard'], {
    cwd: root,
    encoding: 'utf8',
  });
  for (const file of listed.split('\0')) {
    if (/^(src|config|deploy|docs|scripts)\/|^[^/]+$/.test(file)) {
      cpSync(path.join(root, file), path.join(clone, file));
    }
  }
  symlinkSync(path.join(root, 'node_modules'), path.join(clone, 'node_modules'));
}
