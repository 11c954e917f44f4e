import { resolve } from 'node:path';
import type { ProtectedResources } from '../access/protected-list.ts';
import { parseProtectedList } from '../access/protected-list-document.ts';
import { maxListLength } from '../access/protected-list-source.ts';
import { formatProblem, type Problem } from '../config/problem.ts';
import { decodeText, readSettledFile } from '../config/watched-file.ts';
import type { CommandIo } from './command-io.ts';
import { loadConfiguration } from './load-configuration.ts';

/** A list file by its name; undefined once its problems are on standard error: then exit 78. */
export async function readList(name: string, io: CommandIo): Promise<ProtectedResources | undefined> {
  const read = await readSettledFile(resolve(io.cwd, name), { maxBytes: maxListLength });
  const decoded = 'fault' in read ? read : decodeText(read.bytes);
  const refused = (text: string): { readonly problems: readonly Problem[]; readonly list?: undefined } => ({
    problems: [{ file: name, line: 1, column: 1, severity: 'error', text }],
  });
  const parsed =
    'fault' in decoded
      ? refused(`the list cannot be read: ${decoded.fault}`)
      : parseProtectedList(decoded.text, name);
  for (const problem of parsed.list === undefined ? parsed.problems : []) io.err(formatProblem(problem));
  return parsed.list;
}

export interface ListOptions {
  readonly config?: string;
  /** A list file, instead of the one that the configuration names. */
  readonly list?: string;
}

/** The list that a verb is about; undefined as for `readList`. */
export async function findList(options: ListOptions, io: CommandIo): Promise<ProtectedResources | undefined> {
  if (options.list !== undefined) return readList(options.list, io);
  return (await loadConfiguration(options.config, io))?.list;
}
