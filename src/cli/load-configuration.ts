import { resolve } from 'node:path';
import type { ProtectedResources } from '../access/protected-list.ts';
import { parseProtectedList } from '../access/protected-list-document.ts';
import { maxListLength } from '../access/protected-list-source.ts';
import type { LoadedConfig } from '../config/load.ts';
import { formatProblem } from '../lib/problem.ts';
import { decodeText, readStableFile } from '../lib/watched-file.ts';
import type { CommandIo } from './command-io.ts';
import { fileValidators } from './file-validators.ts';
import { loadSettings } from './load-settings.ts';

/** Loads the configuration and the list that it names. Undefined: its problems were printed, and the exit code is 78. */
export async function loadConfiguration(
  file: string | undefined,
  io: CommandIo,
): Promise<(LoadedConfig & { readonly list: ProtectedResources }) | undefined> {
  const loaded = await loadSettings(file, io, fileValidators);
  if (loaded === undefined) return undefined;
  const source = loaded.files.find(({ role }) => role === 'protected-resources');
  const { list } = parseProtectedList(source?.text ?? '', source?.name ?? '');
  if (list === undefined) throw new Error('a list that was found valid cannot be parsed');
  return { ...loaded, list };
}

/** Reads a list file. Undefined: its problems were printed, and the exit code is 78. */
export async function readList(name: string, io: CommandIo): Promise<ProtectedResources | undefined> {
  const read = await readStableFile(resolve(io.cwd, name), maxListLength);
  const decoded = 'fault' in read ? read : decodeText(read.bytes);
  if ('fault' in decoded) {
    const text = `the list cannot be read: ${decoded.fault}`;
    io.err(formatProblem({ file: name, line: 1, column: 1, severity: 'error', text }));
    return undefined;
  }
  const { list, problems } = parseProtectedList(decoded.text, name);
  for (const problem of list === undefined ? problems : []) io.err(formatProblem(problem));
  return list;
}
