import { existsSync } from 'node:fs';
import { rename, writeFile } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import { type CommandIo, escapeToLine, processIo } from '../command-io.ts';
import { listText } from './list-text.ts';
import { isMap, type JsonMap, readOpenApi } from './openapi-document.ts';
import { type OperationsOptions, readOperations } from './openapi-operations.ts';

export interface ProtectedImportOptions extends OperationsOptions {
  /** Where the list goes instead of standard output. */
  readonly out?: string;
  /** Whether `out` may replace a file. */
  readonly force?: boolean;
}

const badUsage = 2;

/**
 * Prints a list of the operations that need a token by an OpenAPI document. Exit code 0, 1 when there is none, 2 for
 * a document that cannot be read whole: half a list would leave routes open.
 */
export async function runProtectedImport(
  name: string,
  options: ProtectedImportOptions,
  io: CommandIo = processIo,
): Promise<number> {
  const out = options.out === undefined ? undefined : resolve(io.cwd, options.out);
  if (out !== undefined && !options.force && existsSync(out)) {
    io.err(`${options.out} is there already; --force replaces it`);
    return badUsage;
  }
  const document = await readOpenApi(name, io);
  if (document === undefined) return badUsage;
  const { operations, notes, faults } = readOperations(document, options);
  for (const fault of faults) io.err(`${name}: error: ${escapeToLine(fault)}`);
  if (faults.length > 0) return badUsage;
  for (const note of notes) io.err(`${name}: note: ${escapeToLine(note)}`);
  const rows = operations.filter(({ needs }) => needs === 'token');
  const counts = `${rows.length} of ${operations.length} operations need a token`;
  if (rows.length === 0) {
    io.err(`${name}: ${counts}: there is nothing to list`);
    return 1;
  }
  const text = listText(rows, ` ${titleOf(document, name)}: ${counts}.`);
  if (out === undefined) io.out(text.trimEnd());
  else {
    // A running proxy may follow the file: it sees the old list or the new one.
    await writeFile(`${out}.new`, text);
    await rename(`${out}.new`, out);
  }
  io.err(`${name}: ${counts}${options.out === undefined ? '' : `; the list is in ${options.out}`}`);
  return 0;
}

function titleOf({ info }: JsonMap, name: string): string {
  const title = isMap(info) ? [info.title, info.version].filter((one) => one !== undefined).join(' ') : '';
  const text = `From ${basename(name)}${title === '' ? '' : ` (${title})`}`;
  return text.replace(/\p{C}+/gu, ' ').slice(0, 200);
}
