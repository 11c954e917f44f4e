import { stat } from 'node:fs/promises';
import type { Mapping } from '../mapping.ts';
import type { ResolverEvent } from '../url-resolver.ts';
import { type LoadedFile, loadMappingFile } from './load-mapping-file.ts';
import type { MappingTable } from './mapping-table.ts';
import type { FileProblem } from './problem.ts';

export interface MappingFileOptions {
  /** `*.csv`, `*.json`, `*.yaml` or `*.yml`. */
  readonly path: string;
  /** How often the file is looked at for a change. Default 1000; 0: only `reload`. */
  readonly lookEveryMs?: number;
  /** Milliseconds between the two readings that must agree. Default 100. */
  readonly settleMs?: number;
  readonly onEvent: (event: ResolverEvent) => void;
}

/** For health, metrics and console. */
export interface FileState {
  readonly path: string;
  readonly rows: number;
  readonly isLastReloadGood: boolean;
  readonly problems: readonly FileProblem[];
}

/** A mapping file that is followed: a good edit replaces the whole table, a bad one leaves the last good table in place. */
export class MappingFile {
  readonly #options: MappingFileOptions;
  #table: MappingTable | undefined;
  #problems: readonly FileProblem[] = [];
  #seen = '';
  #timer: NodeJS.Timeout | undefined;
  #loading: Promise<readonly FileProblem[]> | undefined;
  #isClosed = false;

  constructor(options: MappingFileOptions) {
    this.#options = options;
  }

  get state(): FileState {
    return {
      path: this.#options.path,
      rows: this.#table?.rows ?? 0,
      isLastReloadGood: this.#problems.length === 0,
      problems: this.#problems,
    };
  }

  /** The mapping of `url` in `store`, or of the row without a store. */
  find(url: string, store: string): Mapping | undefined {
    return this.#table?.find(url, store);
  }

  /** Loads, then looks for changes by name, which survives a rename over the file and a swapped symlink. */
  async start(): Promise<readonly FileProblem[]> {
    const problems = await this.reload();
    const { lookEveryMs = 1000 } = this.#options;
    if (lookEveryMs > 0 && !this.#isClosed) {
      this.#timer = setInterval(() => void this.#look(), lookEveryMs).unref();
    }
    return problems;
  }

  /** Loads now; a load under way is waited for first, since it may have read the file before its last edit. */
  async reload(): Promise<readonly FileProblem[]> {
    while (this.#loading !== undefined) await this.#loading;
    this.#loading = this.#load().finally(() => {
      this.#loading = undefined;
    });
    return this.#loading;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#timer);
    await this.#loading;
  }

  async #look(): Promise<void> {
    if (this.#loading === undefined && (await this.#identity()) !== this.#seen) await this.reload();
  }

  async #load(): Promise<readonly FileProblem[]> {
    const { path, settleMs, onEvent } = this.#options;
    const startMs = performance.now();
    // Taken before: an edit during the load is seen as a change by the next look.
    this.#seen = await this.#identity();
    const loaded = await loadMappingFile(path, settleMs).catch((cause: unknown): LoadedFile => {
      return { kind: 'problems', problems: [{ file: path, line: 1, col: 1, text: String(cause) }] };
    });
    if (loaded.kind === 'problems') {
      this.#problems = loaded.problems;
      onEvent({ kind: 'file-refused', problems: loaded.problems });
      return loaded.problems;
    }
    this.#table = loaded.table;
    this.#problems = [];
    onEvent({ kind: 'file-loaded', rows: loaded.table.rows, durationMs: performance.now() - startMs });
    return [];
  }

  async #identity(): Promise<string> {
    try {
      const { dev, ino, size, mtimeNs } = await stat(this.#options.path, { bigint: true });
      return `${dev} ${ino} ${size} ${mtimeNs}`;
    } catch {
      return '';
    }
  }
}
