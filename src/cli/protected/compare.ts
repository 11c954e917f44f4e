import { type ProtectedResource, resourceId } from '../../access/protected-list.ts';
import { type CommandIo, processIo } from '../command-io.ts';
import { badConfiguration } from '../load-configuration.ts';
import { findList, type ListOptions } from '../read-list.ts';
import { textTable } from '../text-table.ts';
import { readOpenApi } from './openapi-document.ts';
import { type Operation, type OperationsOptions, readOperations } from './openapi-operations.ts';
import { createRowCover } from './row-cover.ts';

export interface ProtectedCompareOptions extends ListOptions, OperationsOptions {
  readonly json?: boolean;
}

/** Where a list and a document disagree. */
export interface Comparison {
  /** Operations that need a token by the document, and are open. */
  readonly missing: readonly Operation[];
  /** Operations whose rows ask for fewer scopes than the document. */
  readonly looser: readonly { readonly operation: Operation; readonly lacking: readonly string[] }[];
  /** Rows whose operations need no token by the document. */
  readonly stricter: readonly ProtectedResource[];
  /** Rows of which the document knows no operation. */
  readonly extra: readonly ProtectedResource[];
}

const badUsage = 2;

/** Compares the list with an OpenAPI document. Exit code 0 when they agree, 1 when not, 2 and 78 for bad files. */
export async function runProtectedCompare(
  name: string,
  options: ProtectedCompareOptions,
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

/** Pure. An operation is covered by whatever the proxy would match; a row is that of an operation it names exactly. */
export function compareWithOperations(
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
