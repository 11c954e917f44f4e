/**
 * Private words: a reader from outside has to guess what they mean here. Counts them in each folder, names of variables
 * included, and exits 1 where there are more than scripts/word-limits.json allows. `--list FOLDER` prints them, `--lower`
 * writes lower limits; none is ever raised.
 */
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { readArguments } from './arguments.ts';

const { list, lower } = readArguments<{ list?: string; lower?: true }>({
  name: 'node scripts/check-words.ts',
  about: 'Counts private words in src, test and docs; exits with 1 where there are more than before.',
  options: [
    ['--list <folder>', 'prints each one in this folder, such as src/lib'],
    ['--lower', 'writes the counts that have fallen into scripts/word-limits.json'],
  ],
});

const root = path.join(import.meta.dirname, '..');
const privateWords =
  /\b(?:holds?|held|holding|holders?|quiet|spoilt|turns?|strangers?|crumbs?|pieces?|places?|pages?|books?|strays?|settle[sd]?|mine|standing|lanes?|beats?|licensed|dearest|drills?|nobody|whoever|careless change)\b/gi;

/** What remains after these is counted. */
const technical: readonly (readonly [RegExp, string])[] = [
  [
    /\bpages?\b|pages?(?=[A-Z])|(?<=[a-z])Pages?\b/gi,
    'a web page, a page of documentation, a page of results',
  ],
  [/allSettled|\bsettle[sd]?\b(?= (?:as|with|within))/gi, 'what a promise does (ECMAScript)'],
  [/\bin turn\b|\bin place of\b/gi, 'ordinary English'],
  [
    /npm run (?:-s )?drill\b|`drill`|drill\.(?:json|test)|\|drill\||test\/resilience\/drill\b|['"]drill['"]/g,
    'the name of a command, a folder and a result',
  ],
  [/\bmine\b/gi, 'an id that Spryker defines for all tokens of a user'],
  [
    /two-places|other-place|'(?:quiet|spoilt|hold|(?:untracked-)?stranger)'|`hold`|\^hold: /g,
    'codes in the log and in metrics, which stay',
  ],
  [/a key holding the wrong kind/g, 'a message of Redis'],
  [/\bsettled\b(?=[:,\]]| [}?=):]|\))|record\.settled|\.\.\.settled/g, 'a field of stored records'],
  [/[`']nobody[`']/g, 'a user of Unix, and a part of stored keys'],
];

const limitsFile = path.join(root, 'scripts/word-limits.json');
const limits = JSON.parse(readFileSync(limitsFile, 'utf8')) as Record<string, number>;
const counts = new Map<string, number>();
for (const file of globSync('{src,test,docs}/**/*.{ts,js,md}', { cwd: root }).toSorted()) {
  const folder = folderOf(file);
  const lines = readFileSync(path.join(root, file), 'utf8').split('\n');
  for (const [index, line] of lines.entries()) {
    const found = wordsOf(line);
    counts.set(folder, (counts.get(folder) ?? 0) + found.length);
    if (folder === list && found.length > 0) console.log(`${file}:${index + 1}: ${found.join(', ')}`);
  }
}

/** Tests are one folder: they are moved. */
function folderOf(file: string): string {
  const folders = path.dirname(file).split(path.sep);
  return folders[0] === 'test' ? 'test' : folders.slice(0, 2).join('/');
}

/** A word of a name counts too: `holdBack` has one. */
function wordsOf(line: string): string[] {
  const plain = technical.reduce((text, [pattern]) => text.replace(pattern, ''), line);
  return plain.replace(/([a-z])([A-Z])/g, '$1 $2').match(privateWords) ?? [];
}

let isOver = false;
for (const [folder, count] of counts) {
  const limit = limits[folder] ?? 0;
  if (count > limit) {
    console.error(
      `${folder} has ${count} private words, its limit is ${limit}: see node scripts/check-words.ts --list ${folder}`,
    );
    isOver = true;
  }
}
if (lower) {
  const lowered = Object.entries(limits).map(
    ([folder, limit]) => [folder, Math.min(limit, counts.get(folder) ?? 0)] as const,
  );
  const kept = Object.fromEntries(lowered.filter(([, limit]) => limit > 0));
  writeFileSync(limitsFile, `${JSON.stringify(kept, null, 2)}\n`);
}
const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
console.log(`words: ${total} private ones in ${counts.size} folders`);
if (isOver) process.exitCode = 1;
