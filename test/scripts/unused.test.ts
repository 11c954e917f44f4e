import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, it } from 'vitest';

const script = path.resolve('scripts/check-unused.ts');

/** What the check says of a repository of these files. */
function check(
  files: Readonly<Record<string, string>>,
): readonly [status: number | null, complaints: string[]] {
  const root = mkdtempSync(path.join(tmpdir(), 'shopward-unused-'));
  try {
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(path.join(root, path.dirname(name)), { recursive: true });
      writeFileSync(path.join(root, name), text);
    }
    const { status, stderr } = spawnSync(
      process.execPath,
      ['--disable-warning=ExperimentalWarning', script],
      {
        cwd: root,
        encoding: 'utf8',
      },
    );
    return [status, stderr.split('\n').filter((line) => line !== '')];
  } finally {
    rmSync(root, { recursive: true });
  }
}

it('names what nothing uses, what only tests use without saying so, and what wrongly says so', () => {
  const shelf = `
export const used = 1;
export const unused = 2;
export function tested() {}
/** A size. Exported for its tests. */
export function marked() {}
/** Exported for its tests. */
export type Claimed = string;
export async function loaded() {}
export interface ShelfOptions {
  /** Rows. */
  readonly rows?: number;
  /** Default: 2. Only tests set it. */
  readonly depth?: number;
  readonly height?: number;
  readonly width?: number;
}
export class Shelf {
  #kept = 1;
  dusty = 2;
  constructor(options: ShelfOptions) { this.dusty = 3; }
  get isFull() { return this.#kept > 0; }
  forgotten() {}
}
`;
  const room = `
import { Shelf, type ShelfOptions, used, type Claimed } from './shelf.ts';
export {};
const { loaded } = await import('./shelf.ts');
const options: ShelfOptions = { rows: used };
const { isFull } = new Shelf(options);
console.log(isFull);
`;
  const test = `
import { marked, Shelf, tested } from '../src/shelf.ts';
new Shelf({ rows: 1, depth: 1, height: 1 });
`;
  expect(check({ 'src/shelf.ts': shelf, 'src/room.ts': room, 'test/shelf.test.ts': test })).toEqual([
    1,
    [
      'src/shelf.ts: unused: nothing uses it',
      'src/shelf.ts: tested: its comment does not say "Exported for its tests."',
      'src/shelf.ts: Claimed: "Exported for its tests." is not true, src uses it',
      'src/shelf.ts: ShelfOptions.height: its comment does not say "Only tests set it."',
      'src/shelf.ts: ShelfOptions.width: nothing uses it',
      'src/shelf.ts: dusty: nothing reads this member',
      'src/shelf.ts: forgotten: nothing reads this member',
    ],
  ]);
});
