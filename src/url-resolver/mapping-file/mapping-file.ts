import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { isolated } from '../../lib/faults.ts';
import type { Problem } from '../../lib/problem.ts';
import { FileWatch, readStamp, type WatchOptions } from '../../lib/watched-file.ts';
import { contractEntityTypes, type Mapping } from '../envelope.ts';
import type { FileReading } from './read-mapping-file.ts';
import { MappingTable } from './table.ts';

interface MappingFileOptions extends Pick<WatchOptions, 'pollMs' | 'stableMs'> {
  readonly path: string;
  /** Types that a row may have. Default: those of the contract. */
  readonly entityTypes?: readonly string[];
  readonly onEvent: (event: FileEvent) => void;
}

/** What happens to the file, for the log. */
export type FileEvent =
  | { readonly kind: 'file-loaded'; readonly rows: number; readonly durationMs: number }
  | { readonly kind: 'file-refused'; readonly problems: readonly Problem[] };

/** For health, metrics and console. */
export interface FileState {
  readonly path: string;
  readonly rows: number;
  /** Of the last reading; none: the file is in force as it is. */
  readonly problems: readonly Problem[];
}

/** A watched mapping file. A good edit replaces the whole table; after a bad one the last good table stays. */
export class MappingFile {
  readonly #options: MappingFileOptions;
  #table: MappingTable | undefined;
  #problems: readonly Problem[] = [];
  #watch: FileWatch | undefined;
  #loading: Promise<readonly Problem[]> | undefined;
  #next: Promise<readonly Problem[]> | undefined;
  #isClosed = false;

  constructor(options: MappingFileOptions) {
    this.#options = options;
  }

  get state(): FileState {
    return { path: this.#options.path, rows: this.#table?.rows ?? 0, problems: this.#problems };
  }

  /** The mapping of `url` in `store`, or of the row without a store. */
  find(url: string, store: string): Mapping | undefined {
    return this.#table?.find(url, store);
  }

  /** Loads the file, and watches it by its stamp: it may be too large for a comparison of its content. */
  async start(): Promise<readonly Problem[]> {
    const { path, onEvent: _, ...options } = this.#options;
    // Before the load, so that an edit during it is noticed.
    const stamp = await readStamp(path);
    const problems = await this.reload();
    if (!this.#isClosed) {
      const known = 'bytes' in stamp && { known: stamp.bytes };
      this.#watch = new FileWatch(path, () => this.reload(), { ...options, ...known, read: readStamp });
    }
    return problems;
  }

  /** Loads the file. All calls during a load, which may have read the file before its last edit, share the next one. */
  async reload(): Promise<readonly Problem[]> {
    if (this.#loading === undefined) return this.#begin();
    this.#next ??= this.#loading.then(() => (this.#isClosed ? [] : (this.#loading ?? this.#begin())));
    return this.#next;
  }

  #begin(): Promise<readonly Problem[]> {
    this.#next = undefined;
    this.#loading = this.#load().finally(() => {
      this.#loading = undefined;
    });
    return this.#loading;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#watch?.close();
    await this.#loading;
  }

  async #load(): Promise<readonly Problem[]> {
    const { path, onEvent } = this.#options;
    const startMs = performance.now();
    const loaded = await loadMappingFile(this.#options).catch((cause: unknown): LoadedFile => {
      return { problems: [{ file: path, line: 1, column: 1, severity: 'error', text: String(cause) }] };
    });
    if ('problems' in loaded) {
      this.#problems = loaded.problems;
      onEvent({ kind: 'file-refused', problems: loaded.problems });
      return loaded.problems;
    }
    this.#table = loaded;
    this.#problems = [];
    onEvent({ kind: 'file-loaded', rows: loaded.rows, durationMs: performance.now() - startMs });
    return [];
  }
}

type LoadedFile = MappingTable | { readonly problems: readonly Problem[] };

// The build rewrites `.ts` in imports, but not in URLs, so take the extension of this file.
const workerFile = new URL(`./mapping-file-worker${extname(import.meta.url)}`, import.meta.url);

/** Reads a mapping file in a worker thread. Rejects only when the thread fails. */
export function loadMappingFile(options: Omit<MappingFileOptions, 'onEvent'>): Promise<LoadedFile> {
  const { path, stableMs = 100, entityTypes = contractEntityTypes } = options;
  return new Promise((resolve, reject) => {
    const worker = new Worker(workerFile, { workerData: { path, stableMs, entityTypes }, execArgv: [] });
    const read = isolated((reading: FileReading) => {
      if ('problems' in reading)
        resolve({ problems: reading.problems.map((problem) => ({ file: path, ...problem })) });
      else resolve(new MappingTable(reading));
    });
    worker.once('message', read);
    worker.once('error', reject);
    worker.once('exit', (code) => reject(new Error(`reading ${path} ended with ${code}`)));
  });
}
