import { type ProtectedResource, resourceId } from '../../access/protected-list.ts';
import { createRowCover, type RowCover } from '../../access/protected-list-cover.ts';
import { diffProtectedLists, type RouteChange } from '../../access/protected-list-review.ts';
import { badConfiguration, badUsage, type CommandIo, processIo, textTable } from '../command-io.ts';
import { findList, type ListChoice, readList } from '../load-configuration.ts';
import { jsonRow } from './list.ts';
import { readOpenApi } from './openapi-document.ts';
import { type Operation, readOperations } from './openapi-operations.ts';

/**
 * Prints how the second list differs from the first, and marks what it protects less. Exit code 0 for lists that protect the
 * same, 1 when they differ, 78 for a list with problems.
 */
export async function runProtectedDiff(
  first: string,
  second: string,
  options: { readonly json?: boolean },
  io: CommandIo = processIo,
): Promise<number> {
  const a = await readList(first, io);
  const b = await readList(second, io);
  if (a === undefined || b === undefined) return badConfiguration;
  const { added, removed, changed } = diffProtectedLists(a, b);
  const cover = createRowCover(b.rows);
  const loosenings =
    removed.filter(({ isLooser }) => isLooser).length + changed.filter(({ isLooser }) => isLooser).length;
  if (options.json) {
    io.out(
      JSON.stringify(
        {
          same: added.length + removed.length + changed.length === 0,
          loosenings,
          added: added.map(jsonRow),
          removed: removed.map(({ row, isLooser }) => ({ ...jsonRow(row), isLooser })),
          changed: changed.map(({ before, after, what, isLooser }) => ({
            before: jsonRow(before),
            after: jsonRow(after),
            what,
            isLooser,
          })),
        },
        null,
        2,
      ),
    );
  } else {
    const rows = [
      ...removed.map(({ row, isLooser }) => line('-', row, removedText(row, isLooser, cover))),
      ...added.map((row) => line('+', row, row.observe ? 'observed only' : '')),
      ...changed.map((change) => line('~', change.after, changeText(change))),
    ];
    for (const text of textTable(rows)) io.out(text);
    io.out(
      `${removed.length} removed, ${added.length} added, ${changed.length} changed; ${loosenings === 0 ? 'nothing' : loosenings} looser`,
    );
  }
  return added.length + removed.length + changed.length === 0 ? 0 : 1;
}

function line(sign: string, row: ProtectedResource, text: string): string[] {
  return [sign, resourceId(row), `${row.source.file}:${row.source.line}`, text];
}

function removedText(row: ProtectedResource, isLooser: boolean, cover: RowCover): string {
  const other = cover.rowsOf(row).find(({ row: { observe } }) => !observe);
  if (other === undefined) return isLooser ? 'LOOSER: open now' : 'it was observed only';
  const by = `${resourceId(other.row)} in line ${other.row.source.line}`;
  if (!isLooser) return `still met by ${by}`;
  return cover.isCovered(row) ? `LOOSER: ${by} asks for less` : 'LOOSER: open now';
}

function changeText({ before, after, what, isLooser }: RouteChange): string {
  const texts = what.map((part) => {
    if (part === 'scopes')
      return `scopes ${before.scopes.join(' ') || 'none'} -> ${after.scopes.join(' ') || 'none'}`;
    if (part === 'tokenIn') return `token in ${placesText(before)} -> ${placesText(after)}`;
    if (part === 'observe') return after.observe ? 'only observed now' : 'enforced now';
    if (part === 'group') return `group ${before.group} -> ${after.group}`;
    return `was ${before.template}`;
  });
  return `${isLooser ? 'LOOSER: ' : ''}${texts.join(', ')}`;
}

function placesText({ tokenIn = ['header'] }: ProtectedResource): string {
  return tokenIn.join(' ');
}

/** Where a list and a document disagree. */
interface Comparison {
  /** Operations that need a token by the document, and are open. */
  readonly missing: readonly Operation[];
  /** Operations whose rows ask for fewer scopes than the document. */
  readonly looser: readonly { readonly operation: Operation; readonly lacking: readonly string[] }[];
  /** Rows whose operations need no token by the document. */
  readonly stricter: readonly ProtectedResource[];
  /** Rows of which the document knows no operation. */
  readonly extra: readonly ProtectedResource[];
}

/** Compares the list with an OpenAPI document. Exit code 0 when they agree, 1 when not, 2 and 78 for bad files. */
export async function runProtectedCompare(
  name: string,
  options: ListChoice & { readonly basePath?: string; readonly json?: boolean },
  io: CommandIo = processIo,
): Promise<number> {
  const list = await findList(options, io);
  if (list === undefined) return badConfiguration;
  const document = await readOpenApi(name, io);
  if (document === undefined) return badUsage;
  const { operations, faults } = readOperations(document, options);
  for (const fault of faults) io.err(`${name}: error: ${fault}`);
  if (faults.length > 0) return badUsage;
  const comparison = compareWithOperations(list.rows, operations);
  const { missing, looser, stricter, extra } = comparison;
  const differences = missing.length + looser.length + stricter.length + extra.length;
  if (options.json) io.out(JSON.stringify(jsonReport(comparison), null, 2));
  else {
    const place = ({ source }: ProtectedResource) => `${source.file}:${source.line}`;
    const rows = [
      ...missing.map((one) => ['missing', resourceId(one), one.group]),
      ...looser.map(({ operation, lacking }) => [
        'looser',
        resourceId(operation),
        `lacks scopes ${lacking.join(' ')}`,
      ]),
      ...stricter.map((row) => ['stricter', resourceId(row), place(row)]),
      ...extra.map((row) => ['extra', resourceId(row), place(row)]),
    ];
    for (const line of textTable(rows)) io.out(line);
    io.out(
      `${list.rows.length} rows, ${operations.length} operations: ${missing.length} missing (open, but need a token), ` +
        `${looser.length} looser (fewer scopes), ${stricter.length} stricter (need no token), ${extra.length} extra (no such operation)`,
    );
  }
  return differences === 0 ? 0 : 1;
}

/** Compares by the proxy's own matching for operations, and by the exact route for rows. Pure. */
function compareWithOperations(
  rows: readonly ProtectedResource[],
  operations: readonly Operation[],
): Comparison {
  const cover = createRowCover(rows);
  const named = new Map<ProtectedResource, boolean>();
  const missing: Operation[] = [];
  const looser: Comparison['looser'][number][] = [];
  for (const operation of operations) {
    const met = cover.rowsOf(operation);
    const isNeeded = operation.needs === 'token';
    for (const { row, exact } of met) {
      if (exact || operation.template.toLowerCase() === row.template.toLowerCase())
        named.set(row, isNeeded || (named.get(row) ?? false));
    }
    if (!isNeeded) continue;
    const scopes = new Set(met.flatMap(({ row }) => row.scopes));
    const lacking = operation.scopes.filter((scope) => !scopes.has(scope));
    if (!cover.isCovered(operation)) missing.push(operation);
    else if (lacking.length > 0) looser.push({ operation, lacking });
  }
  return {
    missing,
    looser,
    stricter: rows.filter((row) => named.get(row) === false),
    extra: rows.filter((row) => !named.has(row)),
  };
}

function jsonReport({ missing, looser, stricter, extra }: Comparison): object {
  const operationOf = (one: Operation) => ({
    operation: resourceId(one),
    group: one.group,
    scopes: one.scopes,
  });
  const rowOf = (row: ProtectedResource) => ({
    row: resourceId(row),
    group: row.group,
    line: row.source.line,
  });
  return {
    same: missing.length + looser.length + stricter.length + extra.length === 0,
    missing: missing.map(operationOf),
    looser: looser.map(({ operation, lacking }) => ({ ...operationOf(operation), lacking })),
    stricter: stricter.map(rowOf),
    extra: extra.map(rowOf),
  };
}
