import { basename, resolve } from 'node:path';
import { Document } from 'yaml';
import { conditionTexts } from '../../access/claim-conditions.ts';
import { type ProtectedResource, resourceId } from '../../access/protected-list.ts';
import { parseProtectedList } from '../../access/protected-list-document.ts';
import { maxNamedFileBytes } from '../../config/named-files.ts';
import { isObject, type JsonObject } from '../../lib/json.ts';
import {
  badConfiguration,
  badUsage,
  type CommandIo,
  escapeToLine,
  processIo,
  textTable,
} from '../command-io.ts';
import { isThere, replaceFile } from '../files.ts';
import { findList, type ListChoice } from '../load-configuration.ts';
import { readOpenApi } from './openapi-document.ts';
import { readOperations } from './openapi-operations.ts';

/**
 * Prints the rows of the list; `group`: only of groups whose name holds this text, whatever its case. Exit code 0, 1 when
 * no group has that name, 78 for a list with problems.
 */
export async function runProtectedList(
  options: ListChoice & { readonly json?: boolean; readonly group?: string },
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
  io.err(`no group has a name like "${options.group}": there are ${groups.join(', ')}`);
  return 1;
}

/** A row as data; the same in every verb. */
export function jsonRow(row: ProtectedResource): object {
  const { method, template, group, scopes, tokenIn, observe, credentials, source } = row;
  const conditions = conditionTexts(row);
  return {
    row: resourceId({ method, template }),
    method,
    path: template,
    group,
    scopes,
    ...(conditions.length > 0 && { conditions }),
    ...(tokenIn && { tokenIn }),
    ...(credentials && { credentials }),
    observe,
    file: source.file,
    line: source.line,
  };
}

function textRow(row: ProtectedResource): string[] {
  const { method, template, group, scopes, observe, credentials, source } = row;
  const usual = credentials === 'shop' ? 'token, or what the shop checks' : 'token';
  const asked = [scopes.join(' '), ...conditionTexts(row)].filter((text) => text !== '').join(' and ');
  const needs = asked === '' ? usual : `token with ${asked}`;
  return [group, method, template, observe ? `${needs}, observed` : needs, String(source.line)];
}

/**
 * Prints a list of the operations that need a token by an OpenAPI document, or writes it to `out`, replacing a file only with
 * `force`. Exit code 0, 1 when no operation needs one, 2 for a document that cannot be read whole: half a list would leave
 * routes open.
 */
export async function runProtectedImport(
  name: string,
  options: { readonly basePath?: string; readonly out?: string; readonly force?: boolean },
  io: CommandIo = processIo,
): Promise<number> {
  const out = options.out === undefined ? undefined : resolve(io.cwd, options.out);
  if (out !== undefined && !options.force && isThere(out)) {
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
  // A row in YAML has at least two spaces of indent, a dash, a space and a line end.
  const leastBytes = rows.reduce((sum, row) => sum + Buffer.byteLength(resourceId(row)) + 5, 0);
  if (leastBytes > maxNamedFileBytes) {
    const most = `${maxNamedFileBytes / 1024 / 1024} MiB`;
    io.err(
      `${name}: error: ${counts}: their list is longer than ${most}, which is what shopward reads of one`,
    );
    return badUsage;
  }
  const text = listText(rows, ` ${titleOf(document, name)}: ${counts}.`);
  if (out === undefined) io.out(text.trimEnd());
  else {
    const fault = await replaceFile(out, text).catch((cause: Error) => cause);
    if (fault !== undefined) {
      io.err(`${options.out}: cannot be written: ${fault.message}`);
      return badUsage;
    }
  }
  io.err(`${name}: ${counts}${options.out === undefined ? '' : `; the list is in ${options.out}`}`);
  return 0;
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
  const groups = new Map<string, unknown[]>();
  const document = new Document({});
  for (const row of rows) {
    const items = groups.get(row.group) ?? [];
    groups.set(row.group, items);
    const text = resourceId(row);
    items.push(
      row.scopes.length === 0
        ? text
        : document.createNode({ match: text, scopes: row.scopes }, { flow: true }),
    );
  }
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
