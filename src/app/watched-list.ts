import { compileListInThread } from '../access/list-thread.ts';
import { compileProtectedList, type ProtectedList } from '../access/protected-list.ts';
import { parseProtectedList } from '../access/protected-list-document.ts';
import { type RenderedDocument, renderProtectedResources } from '../access/published-documents.ts';
import { formatProblem, type Problem } from '../config/problem.ts';
import { decodeText, type FileBytes, FileWatch } from '../config/watched-file.ts';
import type { PathRules } from '../http/path-table.ts';
import type { Log } from '../telemetry/log.ts';

/** The protected list in force, and what became of the last edit. */
export interface WatchedList {
  current(): ProtectedList;
  /** The same for clients. */
  rendered(): RenderedDocument;
  /** Why the last edit is not in force; empty when it is. */
  problems(): readonly Problem[];
  readonly reloads: { readonly succeeded: number; readonly failed: number; readonly lastSuccessMs: number };
  /** Text of the list in force. */
  text(): string;
  /**
   * A new content of the file: resolves when it is in force, whole, or refused. It is compiled beside what is served,
   * one content after the other.
   */
  apply(content: FileBytes): Promise<void>;
  /** Looks at the file now (SIGHUP). */
  reload(): void;
  close(): void;
}

export interface WatchedListOptions {
  /** How paths are read (`request`). */
  readonly paths: PathRules;
  readonly file: string;
  /** What `loadConfig` validated. */
  readonly text: string;
  /** Whether the file is watched; a worker is told instead, so that all of them have one list. Default: true. */
  readonly isWatched?: boolean;
  /** Called with each content that differed from the one before, good or not. */
  readonly onContent?: (content: FileBytes) => void;
  readonly log: Log;
}

/** Follows the file. An edit takes effect whole or not at all: a broken one leaves the last good list in force. */
export function watchProtectedList(options: WatchedListOptions): WatchedList {
  const { file, log } = options;
  const first = parseProtectedList(options.text, file);
  if (first.list === undefined) throw new Error(first.problems.map(formatProblem).join('\n'));
  let current = compileProtectedList(first.list, options.paths);
  let rendered = renderProtectedResources(current);
  let text = options.text;
  let problems: readonly Problem[] = [];
  const reloads = { succeeded: 0, failed: 0, lastSuccessMs: Date.now() };

  // Its primary has told it to people already.
  const isReported = options.isWatched !== false;
  const refuse = (found: readonly Problem[]) => {
    problems = found;
    reloads.failed++;
    log[isReported ? 'error' : 'debug'](
      { event: 'list-refused', problems: problems.map(formatProblem) },
      'the protected list was not reloaded',
    );
  };
  const take = async (content: FileBytes) => {
    const decoded = 'fault' in content ? content : decodeText(content.bytes);
    if ('fault' in decoded) {
      refuse([{ file, line: 1, column: 1, severity: 'error', text: `cannot be read: ${decoded.fault}` }]);
      return;
    }
    const next = await compileListInThread({ text: decoded.text, file }, options.paths);
    if (!('list' in next)) return refuse(next.problems);
    const before = current.rows.length;
    ({ list: current, rendered } = next);
    text = decoded.text;
    problems = [];
    reloads.succeeded++;
    reloads.lastSuccessMs = Date.now();
    log[isReported ? 'info' : 'debug'](
      { event: 'list-reloaded', rows: current.rows.length, before },
      'the protected list was reloaded',
    );
  };
  let taking: Promise<void> = Promise.resolve();
  const apply = (content: FileBytes) => {
    taking = taking
      .then(() => take(content))
      .catch((fault: unknown) => {
        const text = fault instanceof Error ? fault.message : 'unknown fault';
        refuse([{ file, line: 1, column: 1, severity: 'error', text: `cannot be compiled: ${text}` }]);
      });
    return taking;
  };
  const onChange = async (content: FileBytes) => {
    await apply(content);
    options.onContent?.(content);
  };
  const watch: FileWatch | undefined =
    options.isWatched === false
      ? undefined
      : new FileWatch(file, (content) => void onChange(content), { known: Buffer.from(options.text) });

  return {
    current: () => current,
    rendered: () => rendered,
    problems: () => problems,
    reloads,
    text: () => text,
    apply,
    reload: () => watch?.reload(),
    close: () => watch?.close(),
  };
}
