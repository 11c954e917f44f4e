import { readFile, stat } from 'node:fs/promises';
import { createKeyChange } from './key-change.ts';
import { type KeyDocument, readKeyDocument } from './key-document.ts';
import { createKeySet, type KeySet, maxCandidates, mergeKeys } from './key-set.ts';
import type { KeySource, VerificationKey } from './key-source.ts';

export interface FileKeySourceOptions {
  /** Paths of PEM, JWK or JWK set files. */
  readonly files: readonly string[];
  readonly algorithms: readonly string[];
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

export interface KeyProblem {
  /** The file; undefined where the problem is in all of them together. */
  readonly file: string | undefined;
  readonly text: string;
}

export interface FileKeySource extends KeySource {
  /**
   * Reads all files again, all or nothing: with problems (returned) the last good keys stay. Files are small and few,
   * so that it is cheap to call on every hint of a change.
   */
  reload(): Promise<readonly KeyProblem[]>;
}

/** The configured key files cannot be used; `problems` says what is wrong where. */
export class KeyFilesError extends Error {
  readonly problems: readonly KeyProblem[];

  constructor(problems: readonly KeyProblem[]) {
    super(problems.map(({ file, text }) => (file === undefined ? text : `${file}: ${text}`)).join('\n'));
    this.name = 'KeyFilesError';
    this.problems = problems;
  }
}

/** Keys in files. `start` rejects with `KeyFilesError`: without keys nothing could ever be verified. */
export function createFileKeySource({ files, algorithms, now }: FileKeySourceOptions): FileKeySource {
  const change = createKeyChange();
  let set: KeySet = createKeySet([]);
  let outcome = { loads: 0, failures: 0, lastSuccessMs: undefined as number | undefined, unusableKeys: 0 };
  let lastError: string | undefined;

  async function load(): Promise<readonly KeyProblem[]> {
    const { keys, problems, ignored } = await readKeyFiles(files, algorithms);
    const failed = problems.length > 0;
    lastError = failed ? 'unusable' : undefined;
    outcome = {
      loads: outcome.loads + 1,
      failures: outcome.failures + (failed ? 1 : 0),
      lastSuccessMs: failed ? outcome.lastSuccessMs : now(),
      unusableKeys: problems.length + ignored.length,
    };
    if (failed) return problems;
    const next = createKeySet(keys);
    const isOther = !next.isSameAs(set);
    set = next;
    if (isOther) change.emit();
    return [];
  }

  // One after the other, so that an older reading never overtakes a newer one.
  let last: Promise<unknown> = Promise.resolve();
  function reload(): Promise<readonly KeyProblem[]> {
    const loading = last.then(load);
    last = loading.catch(() => {});
    return loading;
  }

  return {
    reload,
    async start() {
      const problems = await reload();
      if (problems.length > 0) throw new KeyFilesError(problems);
    },
    keysFor: (header) => (set.keys.length === 0 ? { retryAfterSeconds: 1 } : { keys: set.find(header) }),
    renew: (header, tried) => ({ keys: set.findUntried(header, tried) }),
    onChange: change.onChange,
    status: () => ({ kind: 'files', keys: set.keys.length, ...outcome, lastError }),
    close: () => {},
  };
}

export interface KeyFiles {
  readonly keys: readonly VerificationKey[];
  readonly problems: readonly KeyProblem[];
  /** Keys that are there for something else. */
  readonly ignored: readonly KeyProblem[];
}

/** Reads and checks key files without using them; for `check`, too. */
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
    problems.push({ file: undefined, text: `two different keys bear the kid ${JSON.stringify(kid)}` });
  }
  if (problems.length === 0) problems.push(...checkKeyCount(keys.length));
  return { keys, problems, ignored };
}

function checkKeyCount(keys: number): KeyProblem[] {
  if (keys === 0)
    return [{ file: undefined, text: 'no key here can verify a token of the configured algorithms' }];
  return keys > maxCandidates
    ? [{ file: undefined, text: `${keys} keys; ${maxCandidates} are the most` }]
    : [];
}

/** Larger ones are not key files. */
const maxFileBytes = 256 * 1024;

async function readKeyFile(file: string, algorithms: readonly string[]): Promise<KeyDocument> {
  try {
    const { size } = await stat(file);
    if (size > maxFileBytes) return unreadable('is larger than 256 KiB');
    return readKeyDocument(await readFile(file, 'utf8'), algorithms);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? ` (${String(error.code)})` : '';
    return unreadable(`cannot be read${code}`);
  }
}

function unreadable(problem: string): KeyDocument {
  return { keys: [], problems: [problem], ignored: [], isKeySet: false };
}
