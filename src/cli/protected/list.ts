import { type ProtectedResource, resourceId } from '../../access/protected-list.ts';
import { type CommandIo, processIo } from '../command-io.ts';
import { badConfiguration } from '../load-configuration.ts';
import { findList, type ListOptions } from '../read-list.ts';
import { textTable } from '../text-table.ts';

export interface ProtectedListOptions extends ListOptions {
  readonly json?: boolean;
  /** Only groups whose name holds this text, whatever its case. */
  readonly group?: string;
}

/** Prints the rows of the list. Exit code 0, 1 when no group has that name, 78 for a list with problems. */
export async function runProtectedList(
  options: ProtectedListOptions,
  io: CommandIo = processIo,
): Promise<number> {
  const list = await findList(options, io);
  if (list === undefined) return badConfiguration;
  const wanted = options.group?.toLowerCase() ?? '';
  const rows = list.rows.filter(({ group }) => group.toLowerCase().includes(wanted));
  if (options.json) {
    io.out(JSON.stringify({ file: list.file, rows: rows.map(jsonRow) }, null, 2));
  } else if (rows.length > 0) {
    for (const line of textTable([['group', 'method', 'path', 'needs', 'line'], ...rows.map(textRow)]))
      io.out(line);
    io.out(`${rows.length} of ${list.rows.length} rows of ${list.file}`);
  }
  if (rows.length > 0) return 0;
  const groups = [...new Set(list.rows.map(({ group }) => group))];
  io.err(`no group is named like "${options.group}": there are ${groups.join(', ')}`);
  return 1;
}

/** A row as data; the same in every verb. */
export function jsonRow({ method, template, group, scopes, observe, source }: ProtectedResource): object {
  return {
    row: resourceId({ method, template }),
    method,
    path: template,
    group,
    scopes,
    observe,
    file: source.file,
    line: source.line,
  };
}

function textRow({ method, template, group, scopes, observe, source }: ProtectedResource): string[] {
  const needs = scopes.length === 0 ? 'token' : `token with ${scopes.join(' ')}`;
  return [group, method, template, observe ? `${needs}, observed` : needs, String(source.line)];
}
