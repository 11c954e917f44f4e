import { basename } from 'node:path';
import { Document } from 'yaml';
import { type ProtectedResource, resourceId } from '../../access/protected-list.ts';
import { parseProtectedList } from '../../access/protected-list-document.ts';
import { maxNamedFileBytes } from '../../config/named-files.ts';
import { isObject, type JsonObject } from '../../lib/json.ts';
import { badUsage, type CommandIo, escapeToLine, processIo } from '../command-io.ts';
import { readOpenApi } from './openapi-document.ts';
import { readOperations } from './openapi-operations.ts';

/**
 * Prints a list of the operations that need a token by an OpenAPI document. Exit code 0; 1 if no operation needs one; 2 if the
 * document cannot be read whole, because half a list would leave routes open.
 */
export async function runProtectedImport(
  name: string,
  options: { readonly basePath?: string },
  io: CommandIo = processIo,
): Promise<number> {
  const text = await importList(name, options.basePath, io);
  if (typeof text === 'number') return text;
  io.out(text.trimEnd());
  return 0;
}

/** The text of the list, or the exit code after the reason was printed. */
export async function importList(
  name: string,
  basePath: string | undefined,
  io: CommandIo,
): Promise<string | 1 | 2> {
  const document = await readOpenApi(name, io);
  if (document === undefined) return badUsage;
  const { operations, notes, faults } = readOperations(document, basePath);
  for (const fault of faults) io.err(`${name}: error: ${escapeToLine(fault)}`);
  if (faults.length > 0) return badUsage;
  for (const note of notes) io.err(`${name}: note: ${escapeToLine(note)}`);
  const rows = operations.filter(({ needs }) => needs === 'token');
  const counts = `${rows.length} of ${operations.length} operations need a token`;
  if (rows.length === 0) {
    io.err(`${name}: ${counts}: there is nothing to list`);
    return 1;
  }
  // A row in YAML has at least two spaces of indent, a dash, a space and a line end.
  const leastBytes = rows.reduce((sum, row) => sum + Buffer.byteLength(resourceId(row)) + 5, 0);
  if (leastBytes > maxNamedFileBytes) {
    const most = `${maxNamedFileBytes / 1024 / 1024} MiB`;
    io.err(`${name}: error: ${counts}: their list is longer than ${most}, the most that shopward reads`);
    return badUsage;
  }
  io.err(`${name}: ${counts}`);
  return listText(rows, ` ${titleOf(document, name)}: ${counts}.`);
}

function titleOf({ info }: JsonObject, name: string): string {
  const title = isObject(info) ? [info.title, info.version].filter((one) => one !== undefined).join(' ') : '';
  const text = `From ${basename(name)}${title === '' ? '' : ` (${title})`}`;
  return text.replace(/\p{C}+/gu, ' ').slice(0, 200);
}

type NewRow = Pick<ProtectedResource, 'method' | 'template' | 'group' | 'scopes'>;

/**
 * Formats rows as a list file: grouped, `complete: true` last. The result is checked with the list's own parser.
 * @throws {Error} when a row is invalid, which is a bug of the caller. Exported for its tests.
 */
export function listText(rows: readonly NewRow[], comment: string): string {
  const document = new Document({});
  const itemOf = (row: NewRow) => {
    const match = resourceId(row);
    return row.scopes.length === 0
      ? match
      : document.createNode({ match, scopes: row.scopes }, { flow: true });
  };
  const byGroup = Map.groupBy(rows, ({ group }) => group);
  const groups = new Map([...byGroup].map(([group, its]) => [group, its.map(itemOf)]));
  document.contents = document.createNode({ groups, complete: true }) as never;
  document.commentBefore = ` yaml-language-server: $schema=./protected-resources.schema.json\n${comment}`;
  const text = document.toString({ lineWidth: 0 });
  const { list, problems } = parseProtectedList(text, 'list');
  if (list?.rows.length !== rows.length) {
    throw new Error(
      `a list of ${rows.length} rows was written that cannot be read: ${problems[0]?.text ?? ''}`,
    );
  }
  return text;
}
