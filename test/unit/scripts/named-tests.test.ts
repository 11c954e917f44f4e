import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';

const root = path.join(import.meta.dirname, '../../..');
const pages = ['SECURITY.md', 'README.md', 'CONTRIBUTING.md', ...globSync('docs/**/*.md', { cwd: root })];

/** A path or pattern of tests, or a file name in the folder named before it. */
const testPath = /\btest\/[\w./*-]*[\w*]|(?<=`)[\w.-]+\.(?:test|property|contract|socket)\.ts(?=`)/g;

/** The tests that a page names. A file without a folder is in the folder of the test before it. */
function testsNamedIn(page: string): string[] {
  const text = readFileSync(path.join(root, page), 'utf8');
  let folder = '';
  return [...text.matchAll(testPath)].map(([name]) => {
    const whole = name.startsWith('test/') ? name : `${folder}/${name}`;
    folder = path.dirname(whole);
    return whole;
  });
}

describe.each(pages)('%s', (page) => {
  it('names only tests that exist', () => {
    const missing = testsNamedIn(page).filter((name) => globSync(name, { cwd: root }).length === 0);
    expect(missing).toEqual([]);
  });
});
