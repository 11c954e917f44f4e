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
import { finish, finishInSlices, type Steps } from '../lib/slices.ts';
import { decodeText, type FileBytes, FileWatch } from '../lib/watched-file.ts';
import type { PathRules } from '../routes/path-table.ts';
import { compileInSteps, type ProtectedList } from './protected-list.ts';
import { parseInSteps } from './protected-list-document.ts';
import { type RenderedDocument, renderProtectedResources } from './published-documents.ts';

interface WatchedListOptions {
  /** How paths are read (`request`). */
  readonly paths: PathRules;
  readonly file: string;
  /** What `loadConfig` validated. */
  readonly text: string;
  /** Whether the file is watched; a worker gets it from its primary, so that all of them have one list. Default: true. */
  readonly isWatched?: boolean;
  /** Called with each content that differed from the one before, good or not. */
  readonly onContent?: (content: FileBytes) => void;
  readonly log: ComponentLog;
}

/** More errors than an operator mends at once. */
const maxErrors = 200;

/** Parses and compiles a list. Gives the first errors if the list must not take effect. */
function* readList(
  text: string,
  { file, paths }: WatchedListOptions,
): Steps<{ readonly list: ProtectedList } | { readonly problems: readonly Problem[] }> {
  const { list: parsed, problems } = yield* parseInSteps(text, file, { withWarnings: false });
  if (parsed === undefined) return { problems: problems.slice(0, maxErrors) };
  return { list: yield* compileInSteps(parsed, paths) };
}

/**
 * The protected list in force, and what became of the last edit. The file is followed: an edit takes effect whole or not
 * at all, a broken one leaves the last good list in force.
 */
export class WatchedList implements Component {
  readonly name = 'protected-list';
  /** The page has the list itself. */
  readonly title = false;
  readonly metrics: readonly MetricSpec[];
  readonly reloads = { succeeded: 0, failed: 0, lastSuccessMs: Date.now() };
  readonly #options: WatchedListOptions;
  readonly #watch: FileWatch | undefined;
  #current: ProtectedList;
  #rendered: Promise<RenderedDocument> | undefined;
  #text: string;
  #problems: readonly Problem[] = [];
  #applying: Promise<void> = Promise.resolve();
  readonly #onApplied: ((before: string, after: string) => void)[] = [];

  constructor(options: WatchedListOptions) {
    const { file, text, isWatched = true } = options;
    const first = finish(readList(text, options));
    if ('problems' in first) throw new Error(first.problems.map(formatProblem).join('\n'));
    this.#options = options;
    this.#current = first.list;
    this.#text = text;
    const onChange = async (content: FileBytes) => {
      await this.apply(content);
      options.onContent?.(content);
    };
    if (isWatched) this.#watch = new FileWatch(file, onChange, { known: Buffer.from(text) });
    this.metrics = [...this.#gauges(), ...(isWatched ? this.#counters() : [])];
  }

  readonly current = () => this.#current;
  /** The list for clients, rendered on demand: 60,000 rows take 10 MB. */
  readonly rendered = (): Promise<RenderedDocument> => {
    this.#rendered ??= finishInSlices(renderProtectedResources(this.#current));
    return this.#rendered;
  };
  /** Why the last edit is not in force; empty when it is. */
  readonly problems = () => this.#problems;
  /** Text of the list in force. */
  readonly text = () => this.#text;

  /**
   * A new content of the file: resolves when it is in force, whole, or refused. It is compiled beside what is served,
   * one content after the other.
   */
  readonly apply = (content: FileBytes): Promise<void> => {
    this.#applying = this.#applying
      .then(() => this.#check(content))
      .catch((fault: unknown) => {
        this.#refuseWhole(`cannot be compiled: ${fault instanceof Error ? fault.message : 'unknown fault'}`);
      });
    return this.#applying;
  };

  health(): Health {
    const problems = this.#problems;
    return healthOf(
      problems.map((problem) => `protected list: ${formatProblem(problem)}`),
      { problems },
    );
  }

  /** Calls back with the text of before and the new one whenever another takes effect. */
  onApplied(listener: (before: string, after: string) => void): void {
    this.#onApplied.push(listener);
  }

  reload(): void {
    this.#watch?.reload();
  }

  close(): void {
    this.#watch?.close();
  }

  async #check(content: FileBytes): Promise<void> {
    const { log } = this.#options;
    const decoded = 'fault' in content ? content : decodeText(content.bytes);
    if ('fault' in decoded) return this.#refuseWhole(`cannot be read: ${decoded.fault}`);
    const next = await finishInSlices(readList(decoded.text, this.#options));
    if ('problems' in next) return this.#refuse(next.problems);
    const before = this.#current.rows.length;
    this.#current = next.list;
    this.#rendered = undefined;
    const textBefore = this.#text;
    this.#text = decoded.text;
    this.#problems = [];
    this.reloads.succeeded++;
    this.reloads.lastSuccessMs = Date.now();
    log[this.#isReported ? 'info' : 'debug'](
      { event: 'list-reloaded', rows: this.#current.rows.length, before },
      'the protected list was reloaded',
    );
    for (const listener of this.#onApplied) listener(textBefore, decoded.text);
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

  /** A worker's primary has logged it already. */
  get #isReported(): boolean {
    return this.#options.isWatched !== false;
  }

  /** Of each process; the worker that is worst off is shown. */
  #gauges(): MetricSpec[] {
    return [
      gauge(
        'shopward_protected_rows',
        'Rows of the protected list in force.',
        'min',
        () => this.#current.rows.length,
      ),
      gauge(
        'shopward_config_last_reload_success',
        'Whether the last edit of the protected list is in force.',
        'min',
        () => (this.#problems.length === 0 ? 1 : 0),
      ),
      gauge(
        'shopward_config_last_reload_success_timestamp_seconds',
        'When a list last took effect.',
        'min',
        () => Math.floor(this.reloads.lastSuccessMs / 1000),
      ),
    ];
  }

  /** Edits of the list, counted once: by who follows its file, not by each worker that gets it. */
  #counters(): MetricSpec[] {
    const { reloads } = this;
    return [
      counter(
        'shopward_config_reloads',
        'Edits of the protected list that took effect.',
        () => reloads.succeeded,
      ),
      counter(
        'shopward_config_reload_failures',
        'Edits of the protected list that were refused.',
        () => reloads.failed,
      ),
    ];
  }
}
