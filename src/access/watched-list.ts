import {
  type Component,
  type ComponentLog,
  counter,
  gauge,
  type Health,
  healthOf,
  type MetricSpec,
} from '../lib/component.ts';
import { formatProblem, type Problem } from '../lib/problem.ts';
import { finishInSlices } from '../lib/slices.ts';
import { decodeText, type FileBytes, FileWatch } from '../lib/watched-file.ts';
import type { PathRules } from '../routes/path-table.ts';
import { checkListAside, type ListCheck } from './list-check.ts';
import { openPackedList, type PackedList, packList } from './packed-list.ts';
import type { ProtectedList } from './protected-list.ts';
import { parseProtectedList } from './protected-list-document.ts';
import { type RenderedDocument, renderProtectedResources } from './published-documents.ts';

export interface StartList {
  /** The text that `loadConfig` read: the file may have changed since. Empty in a worker. */
  readonly text: string;
  /** `text`, compiled. Default: the constructor compiles it. */
  readonly packed?: PackedList | undefined;
}

interface WatchedListOptions extends StartList {
  readonly paths: PathRules;
  readonly file: string;
  /** Whether the file is watched. A worker gets its list from the primary, so that all workers have the same. Default: true. */
  readonly isWatched?: boolean;
  /** Default: in a child process, if this list or the list in force is long. */
  readonly check?: typeof checkListAside;
  readonly log: ComponentLog;
}

/** Pause before a list is compiled again after a failure that was not due to its text. */
const retryMs = 10_000;

function compileNow({ text, file, paths }: WatchedListOptions): PackedList {
  const { list, problems } = parseProtectedList(text, file, false);
  if (list === undefined) throw new Error(problems.map(formatProblem).join('\n'));
  return packList(list, paths);
}

/** The list for components that only read it. */
export type ListInForce = Pick<WatchedList, 'rendered' | 'onApplied'> & {
  readonly inForce: ProtectedList;
};

/**
 * The protected list in force, and the result of the last edit. The file is watched. An edit takes effect as a whole or not
 * at all; after a broken one the last good list stays in force.
 */
export class WatchedList implements Component {
  readonly name = 'protected-list';
  /** No tile: the console shows the list itself. */
  readonly title = false;
  readonly metrics: readonly MetricSpec[];
  /** Only this class replaces it. */
  inForce: ProtectedList;
  readonly reloads = { succeeded: 0, failed: 0, lastSuccessMs: Date.now() };
  readonly #options: WatchedListOptions;
  readonly #watch: FileWatch | undefined;
  #packed: PackedList;
  #rendered: Promise<RenderedDocument> | undefined;
  #problems: readonly Problem[] = [];
  #applying: Promise<void> = Promise.resolve();
  #retry: NodeJS.Timeout | undefined;
  readonly #onApplied: ((packed: PackedList) => void)[] = [];
  readonly #onCompared: ((check: ListCheck) => void)[] = [];

  /** Throws if the text is not a valid list. */
  constructor(options: WatchedListOptions) {
    const { file, text, isWatched = true, packed = compileNow(options) } = options;
    this.#options = options;
    this.#packed = packed;
    this.inForce = openPackedList(packed, file);
    if (isWatched) this.#watch = new FileWatch(file, this.apply, { known: Buffer.from(text) });
    this.metrics = this.#createMetrics();
  }

  /** The published list, rendered at the first request: 60,000 rows take 10 MB. */
  readonly rendered = (): Promise<RenderedDocument> => {
    this.#rendered ??= finishInSlices(renderProtectedResources(this.inForce));
    return this.#rendered;
  };
  /** Why the last edit is not in force; empty when it is. */
  readonly problems = () => this.#problems;
  readonly packed = () => this.#packed;

  /**
   * Applies new content of the file; resolves when it is in force or refused. Requests are served meanwhile; contents are
   * compiled one after the other.
   */
  readonly apply = (content: FileBytes): Promise<void> => {
    clearTimeout(this.#retry);
    this.#applying = this.#applying
      .then(() => this.#check(content))
      .catch((fault: unknown) => {
        this.#refuseWhole(`cannot be compiled: ${fault instanceof Error ? fault.message : 'unknown fault'}`);
        clearTimeout(this.#retry);
        this.#retry = setTimeout(() => this.apply(content), retryMs).unref();
      });
    return this.#applying;
  };

  /** Takes a list that was compiled elsewhere. */
  readonly adopt = (packed: PackedList): void => {
    const { log, file } = this.#options;
    const before = this.inForce.rows.length;
    this.#packed = packed;
    this.inForce = openPackedList(packed, file);
    this.#rendered = undefined;
    this.#problems = [];
    this.reloads.succeeded++;
    this.reloads.lastSuccessMs = Date.now();
    log[this.#isReported ? 'info' : 'debug'](
      { event: 'list-reloaded', rows: this.inForce.rows.length, before },
      'the protected list was reloaded',
    );
    for (const listener of this.#onApplied) listener(packed);
  };

  health(): Health {
    const problems = this.#problems;
    return healthOf(
      problems.map((problem) => `protected list: ${formatProblem(problem)}`),
      { problems },
    );
  }

  onApplied(listener: (packed: PackedList) => void): void {
    this.#onApplied.push(listener);
  }

  onCompared(listener: (check: ListCheck) => void): void {
    this.#onCompared.push(listener);
  }

  reload(): void {
    this.#watch?.reload();
  }

  close(): void {
    clearTimeout(this.#retry);
    this.#watch?.close();
  }

  async #check(content: FileBytes): Promise<void> {
    const { file, paths, check: checkText = checkListAside, log } = this.#options;
    const decoded = 'fault' in content ? content : decodeText(content.bytes);
    if ('fault' in decoded) return this.#refuseWhole(`cannot be read: ${decoded.fault}`);
    const { text } = decoded;
    let isTaken = false;
    const take = (packed: PackedList) => {
      isTaken = true;
      this.adopt(packed);
    };
    const { rows, open } = this.#packed;
    const check = await checkText({ file, text, paths, inForce: { rows, open } }, take).catch(
      (fault: unknown) => {
        if (!isTaken) throw fault;
        log.error({ event: 'fault', err: fault }, 'an edit of the list could not be compared');
      },
    );
    if (check === undefined) return;
    if (!isTaken) return this.#refuse(check.problems);
    for (const listener of this.#onCompared) listener(check);
  }

  #refuseWhole(text: string): void {
    this.#refuse([{ file: this.#options.file, line: 1, column: 1, severity: 'error', text }]);
  }

  #refuse(problems: readonly Problem[]): void {
    this.#problems = problems;
    this.reloads.failed++;
    this.#options.log[this.#isReported ? 'error' : 'debug'](
      { event: 'list-refused', problems: problems.map(formatProblem) },
      'the protected list was not reloaded',
    );
  }

  /** In a worker, the primary has already logged the edit. */
  get #isReported(): boolean {
    return this.#options.isWatched !== false;
  }

  /** The lowest value of all workers is reported. Edits are counted only by the process that watches the file. */
  #createMetrics(): MetricSpec[] {
    const { reloads } = this;
    const rows = () => this.inForce.rows.length;
    const isInForce = () => Number(this.#problems.length === 0);
    const lastSuccess = () => Math.floor(reloads.lastSuccessMs / 1000);
    const gauges = [
      gauge('shopward_protected_rows', 'Rows of the protected list in force.', 'min', rows),
      gauge(
        'shopward_config_last_reload_success',
        'Whether the last edit of the protected list is in force.',
        'min',
        isInForce,
      ),
      gauge(
        'shopward_config_last_reload_success_timestamp_seconds',
        'When a list last took effect.',
        'min',
        lastSuccess,
      ),
    ];
    if (!this.#isReported) return gauges;
    const succeeded = () => reloads.succeeded;
    const failed = () => reloads.failed;
    return [
      ...gauges,
      counter('shopward_config_reloads', 'Edits of the protected list that took effect.', succeeded),
      counter('shopward_config_reload_failures', 'Edits of the protected list that were refused.', failed),
    ];
  }
}
