import { decodeText, readOnce } from '../lib/watched-file.ts';
import { type KeyDocument, readKeyDocument, unusable } from './key-document.ts';
import {
  KeptKeys,
  type KeySourceStatus,
  maxCandidates,
  mergeKeys,
  type VerificationKey,
} from './key-source.ts';

interface FileKeySourceOptions {
  readonly files: readonly string[];
  readonly algorithms: readonly string[];
  readonly now: () => number;
}

interface KeyProblem {
  /** The file; undefined if the problem is in all files together. */
  readonly file: string | undefined;
  readonly text: string;
}

/** Keys in files. `start` rejects if they cannot be used, because without keys no token could be verified. */
export class FileKeySource extends KeptKeys {
  readonly #options: FileKeySourceOptions;
  readonly #counts = { loads: 0, failures: 0, unusableKeys: 0 };
  #lastSuccessMs: number | undefined;
  #lastError: string | undefined;
  /** Readings follow one another, so that an older one never overtakes a newer one. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: FileKeySourceOptions) {
    super();
    this.#options = options;
  }

  /**
   * Reads all files again, all or nothing: if there are problems (which are returned) the last good keys stay. Cheap
   * enough to be called on every hint of a change.
   */
  reload(): Promise<readonly KeyProblem[]> {
    const loading = this.#last.then(() => this.#load());
    this.#last = loading.catch(() => {});
    return loading;
  }

  async start(): Promise<void> {
    const problems = await this.reload();
    const texts = problems.map(({ file, text }) => (file === undefined ? text : `${file}: ${text}`));
    if (texts.length > 0) throw new Error(texts.join('\n'));
  }

  status(): KeySourceStatus {
    const last = { lastSuccessMs: this.#lastSuccessMs, lastError: this.#lastError };
    return { kind: 'files', keys: this.current().length, ...this.#counts, ...last };
  }

  async #load(): Promise<readonly KeyProblem[]> {
    const { keys, problems, ignored } = await readKeyFiles(this.#options.files, this.#options.algorithms);
    const isUnusable = problems.length > 0;
    this.#counts.loads++;
    this.#counts.unusableKeys = problems.length + ignored.length;
    this.#lastError = isUnusable ? 'unusable' : undefined;
    if (isUnusable) {
      this.#counts.failures++;
      return problems;
    }
    this.#lastSuccessMs = this.#options.now();
    this.replace(keys);
    return [];
  }
}

interface KeyFiles {
  readonly keys: readonly VerificationKey[];
  readonly problems: readonly KeyProblem[];
  /** Good keys that are for another use. */
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
  const countProblem = checkKeyCount(keys.length);
  if (problems.length === 0 && countProblem) problems.push({ file: undefined, text: countProblem });
  return { keys, problems, ignored };
}

function checkKeyCount(keys: number): string | undefined {
  if (keys === 0) return 'no key here can verify a token of the configured algorithms';
  return keys > maxCandidates ? `${keys} keys; ${maxCandidates} are the most` : undefined;
}

/** Bytes; a larger file is not a key file. */
export const maxKeyFileBytes = 256 * 1024;

async function readKeyFile(file: string, algorithms: readonly string[]): Promise<KeyDocument> {
  const read = await readOnce(file, maxKeyFileBytes);
  const decoded = 'fault' in read ? read : decodeText(read.bytes);
  return 'fault' in decoded ? unusable(decoded.fault) : readKeyDocument(decoded.text, algorithms);
}
