import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';

const root = path.join(import.meta.dirname, '../..');
const pages = ['SECURITY.md', 'README.md', ...globSync('docs/**/*.md', { cwd: root })];

/** A file or folder of tests, a file of the folder named before it, or a pattern of them. */
const testPath = /\btest\/[\w./*-]*[\w*]|(?<=`)[\w.-]+\.(?:test|property|contract|socket)\.ts(?=`)/g;

/** Of a page: each test that it names, with the folder of the one before where it names a file alone. */
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

/** Rows of tables, items of lists and paragraphs. */
function statementsOf(text: string): string[] {
  return text
    .split(/\n(?:\n+|(?=\||- |\d\. ))/)
    .map((statement) => statement.replace(/\s+/g, ' '))
    .filter((statement) => !/^\s*(?:#|\|---)/.test(statement));
}

/** An amount with its unit, and the words of a promise about amounts. */
const amount =
  /\d\s?(?:ms|s|µs|KiB|MiB|KB|MB|%)\b|\b\d[\d,.]* (?:ms|seconds|octets|percent|times|interim|connections|fetches|rows|a user)\b|\blinear\b|\bbounded\b|\bat most\b|\bconstant work\b/;
/** What a test of that statement is named by. */
const evidence = /\btest\/|\bsame test\b|`npm run [a-z]+`|\.test\.ts\b/;

describe('SECURITY.md', () => {
  const text = readFileSync(path.join(root, 'SECURITY.md'), 'utf8');

  it('names a test beside every amount, bound and cost', () => {
    const bare = statementsOf(text).filter((one) => amount.test(one) && !evidence.test(one));
    expect(bare).toEqual([]);
  });
});
