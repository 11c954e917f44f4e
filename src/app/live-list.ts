import { formatProblem, type Problem } from '../config/problem.ts';
import type { FileBytes } from '../config/read-file.ts';
import { decodeText } from '../config/read-file.ts';
import { type FileWatch, watchFile } from '../config/watch.ts';
import {
  compileProtectedList,
  type ProtectedList,
  type ProtectedListOptions,
  parseProtectedList,
} from '../protection/protected-list.ts';
import type { Log } from '../telemetry/log.ts';

/** The protected list in force, and what became of the last edit. */
export interface LiveList {
  current(): ProtectedList;
  /** Why the last edit is not in force; empty when it is. */
  problems(): readonly Problem[];
  readonly reloads: { readonly succeeded: number; readonly failed: number; readonly lastSuccessMs: number };
  /** Text of the list in force. */
  text(): string;
  /** A new content of the file: in force at once and whole, or refused. */
  offer(content: FileBytes): void;
  /** Looks at the file now (SIGHUP). */
  look(): void;
  close(): void;
}

export interface LiveListOptions extends ProtectedListOptions {
  readonly file: string;
  /** What `loadConfig` judged good. */
  readonly text: string;
  /** Whether the file is watched; a worker is told instead, so that all of them have one list. Default: true. */
  readonly isFollowed?: boolean;
  /** Called with each content that differed from the one before, good or not. */
  readonly onContent?: (content: FileBytes) => void;
  readonly log: Log;
}

/** Follows the file. An edit takes effect whole or not at all: a broken one leaves the last good list in force. */
export function followProtectedList(options: LiveListOptions): LiveList {
  const { file, log } = options;
  const compile = (text: string) => {
    const { list, problems } = parseProtectedList(text, file);
    return list === undefined ? problems : compileProtectedList(list, options);
  };
  const first = compile(options.text);
  if (!('match' in first)) throw new Error(first.map(formatProblem).join('\n'));
  let current: ProtectedList = first;
  let text = options.text;
  let problems: readonly Problem[] = [];
  const reloads = { succeeded: 0, failed: 0, lastSuccessMs: Date.now() };

  // Its primary has told it to people already.
  const isTold = options.isFollowed !== false;
  const refuse = (found: readonly Problem[]) => {
    // Remarks on other rows would hide what is wrong with this edit.
    problems = found.filter(({ severity }) => severity === 'error');
    reloads.failed++;
    log[isTold ? 'error' : 'debug'](
      { event: 'list-refused', problems: problems.map(formatProblem) },
      'the protected list was not reloaded',
    );
  };
  const offer = (content: FileBytes) => {
    const decoded = 'fault' in content ? content : decodeText(content.bytes);
    if ('fault' in decoded) {
      refuse([{ file, line: 1, column: 1, severity: 'error', text: `cannot be read: ${decoded.fault}` }]);
      return;
    }
    const next = compile(decoded.text);
    if (!('match' in next)) return refuse(next);
    const before = current.rows.length;
    current = next;
    text = decoded.text;
    problems = [];
    reloads.succeeded++;
    reloads.lastSuccessMs = Date.now();
    log[isTold ? 'info' : 'debug'](
      { event: 'list-reloaded', rows: next.rows.length, before },
      'the protected list was reloaded',
    );
  };
  const onChange = (content: FileBytes) => {
    offer(content);
    options.onContent?.(content);
  };
  const watch: FileWatch | undefined =
    options.isFollowed === false
      ? undefined
      : watchFile(file, onChange, { known: Buffer.from(options.text) });

  return {
    current: () => current,
    problems: () => problems,
    reloads,
    text: () => text,
    offer,
    look: () => watch?.look(),
    close: () => watch?.close(),
  };
}
