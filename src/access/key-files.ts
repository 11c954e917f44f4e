import { decodeText, readOnce } from '../lib/watched-file.ts';
import { type KeyDocument, readKeyDocument, unusable } from './key-document.ts';
import { type Keys, maxCandidates, mergeKeys } from './key-source.ts';

interface KeyProblem {
  /** The file; undefined if the problem is in all files together. */
  readonly file: string | undefined;
  readonly text: string;
}

interface KeyFiles {
  readonly keys: Keys;
  readonly problems: readonly KeyProblem[];
  /** Good keys that are for another use. */
  readonly ignored: readonly KeyProblem[];
}

/** Reads and checks key files without using their keys. `shopward check` calls it, too. */
export async function readKeyFiles(
  files: readonly string[],
  algorithms: readonly string[],
): Promise<KeyFiles> {
  const documents = await Promise.all(
    files.map(async (file) => ({ file, ...(await readKeyFile(file, algorithms)) })),
  );
  const { keys, ambiguousKids } = mergeKeys(documents.flatMap((document) => document.keys));
  const problems: KeyProblem[] = documents.flatMap(({ file, problems }) =>
    problems.map((text) => ({ file, text })),
  );
  const ignored = documents.flatMap(({ file, ignored }) => ignored.map((text) => ({ file, text })));
  for (const kid of ambiguousKids) {
    problems.push({ file: undefined, text: `two different keys have the kid ${JSON.stringify(kid)}` });
  }
  const countProblem = checkKeyCount(keys.length);
  if (problems.length === 0 && countProblem) problems.push({ file: undefined, text: countProblem });
  return { keys, problems, ignored };
}

function checkKeyCount(keys: number): string | undefined {
  if (keys === 0) return 'no key here fits a configured algorithm';
  return keys > maxCandidates ? `${keys} keys; at most ${maxCandidates} are allowed` : undefined;
}

/** Bytes; a larger file is not a key file. */
export const maxKeyFileBytes = 256 * 1024;

async function readKeyFile(file: string, algorithms: readonly string[]): Promise<KeyDocument> {
  const read = await readOnce(file, maxKeyFileBytes);
  const decoded = 'fault' in read ? read : decodeText(read.bytes);
  return 'fault' in decoded ? unusable(decoded.fault) : readKeyDocument(decoded.text, algorithms);
}
