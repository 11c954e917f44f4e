/**
 * Finds private words: a reader who does not know this project cannot know their meaning. Prints each one in src, test,
 * docs, scripts, bench and demo, names of variables included, and exits 1 if there are any.
 */
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';

const root = path.join(import.meta.dirname, '..');
const ownFile = path.basename(import.meta.filename);
const privateWords =
  /\b(?:holds?|held|holding|holders?|quiet|spoilt|turns?|strangers?|crumbs?|pieces?|places?|pages?|books?|strays?|settle[sd]?|mine|standing|lanes?|beats?|licensed|dearest|drills?|nobody|whoever|careless change)\b/gi;

/** Technical uses of the words, which are allowed. */
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

let count = 0;
for (const file of globSync('{src,test,docs,scripts,bench,demo}/**/*.{ts,js,md}', { cwd: root })
  .filter((one) => !one.endsWith(ownFile))
  .toSorted()) {
  const lines = readFileSync(path.join(root, file), 'utf8').split('\n');
  for (const [index, line] of lines.entries()) {
    const found = wordsOf(line);
    count += found.length;
    if (found.length > 0) console.error(`${file}:${index + 1}: ${found.join(', ')}: write the usual word`);
  }
}
console.log(`words: ${count} private words`);
if (count > 0) process.exitCode = 1;

/** A part of a name counts too: `holdBack` contains `hold`. */
function wordsOf(line: string): string[] {
  const plain = technical.reduce((text, [pattern]) => text.replace(pattern, ''), line);
  return plain.replace(/([a-z])([A-Z])/g, '$1 $2').match(privateWords) ?? [];
}
