/**
 * Converts public test vectors of C2SP/wycheproof (testvectors_v1/json_web_signature_test.json, json_web_key_test.json)
 * into the compact form of test/security/attacks/wycheproof.
 *
 * Private parts of key pairs, notes and flags are left out. The vectors are Apache-2.0; their notice is in the same folder.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { readArguments } from './arguments.ts';

interface Vectors {
  readonly testGroups: readonly {
    readonly comment?: string;
    readonly public?: object;
    readonly private?: object;
    readonly tests: readonly {
      readonly tcId: number;
      readonly comment: string;
      readonly jws: string | object;
      readonly result: string;
    }[];
  }[];
}

const folder = path.join(import.meta.dirname, '../test/security/attacks/wycheproof');
const { words: files } = readArguments({
  name: 'node scripts/import-wycheproof.ts',
  about:
    'Converts test vectors of C2SP/wycheproof into the compact form of test/security/attacks/wycheproof.',
  words: { name: '<files...>', meaning: 'files of vectors, as published' },
});

for (const file of files) {
  const { testGroups } = JSON.parse(readFileSync(file, 'utf8')) as Vectors;
  // One line for a group, then one line for each of its vectors.
  const lines = testGroups.flatMap((group) => [
    // A symmetric key has no public half.
    { name: group.comment ?? '', key: group.public ?? group.private },
    ...group.tests.map(({ tcId, comment, jws, result }) => [tcId, comment, result, jws]),
  ]);
  const target = path.join(folder, `${path.basename(file, '.json')}.jsonl`);
  writeFileSync(target, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  const count = lines.length - testGroups.length;
  console.log(`${path.relative(process.cwd(), target)}: ${count} vectors in ${testGroups.length} groups`);
}
