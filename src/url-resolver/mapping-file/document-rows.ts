import { isMap, isNode, isSeq, LineCounter, parseDocument } from 'yaml';
import { isObject } from '../../lib/json.ts';
import { contractEntityTypes } from '../envelope.ts';
import { type ProblemList, typeProblem, validateText } from './row-validation.ts';
import { type ByteRange, TableBuilder, type TableData } from './table.ts';

/** A problem whose position is not looked up yet. `key` undefined: of the row as a whole; `row` -1: of the document. */
interface RowProblem {
  readonly row: number;
  readonly key: string | undefined;
  readonly text: string;
}

const keys = ['url', 'entityType', 'entityId', 'store'];

/** Reads a list of `{ url, entityType, entityId, store? }` in JSON or YAML. Undefined when there are problems. */
export function readDocument(
  text: string,
  format: 'json' | 'yaml',
  problems: ProblemList,
  entityTypes: readonly string[] = contractEntityTypes,
): TableData | undefined {
  if (text.trim() !== '' && !text.endsWith('\n') && format === 'yaml') {
    // A YAML list that is cut off after any line is still a YAML list.
    problems.add(
      1,
      1,
      'the last line has no line break: the file may be only half written; add one if it is whole',
    );
    return undefined;
  }
  const rows = format === 'json' ? parseJson(text, problems) : parseYaml(text, problems);
  if (rows === undefined) return undefined;
  const builder = new TableBuilder(text.length, entityTypes);
  const found: RowProblem[] = Array.isArray(rows)
    ? rows.flatMap((row, index) => addRow(row, index, builder, entityTypes))
    : [{ row: -1, key: undefined, text: 'a list of rows is expected' }];
  const data = builder.finish((row, first) => {
    found.push({ row: row - 1, key: 'url', text: `the same url and store as in row ${first} of the list` });
  });
  if (found.length > 0) place(found, text, problems);
  if (data.rows === 0 && problems.isEmpty) problems.add(1, 1, 'no row');
  return problems.isEmpty ? data : undefined;
}

const scratch = Buffer.alloc(16 * 1024);

function addRow(
  row: unknown,
  index: number,
  builder: TableBuilder,
  entityTypes: readonly string[],
): RowProblem[] {
  if (!isObject(row)) {
    return [{ row: index, key: undefined, text: 'a row has url, entityType and entityId' }];
  }
  const { url, entityType, entityId, store = '' } = row;
  const problems: RowProblem[] = Object.keys(row)
    .filter((key) => !keys.includes(key))
    .map((key) => ({ row: index, key, text: `unknown key ${key}` }));
  const type = (entityTypes as readonly unknown[]).indexOf(entityType);
  if (type < 0) problems.push({ row: index, key: 'entityType', text: typeProblem(entityTypes) });
  const ranges: ByteRange[] = [];
  let at = 0;
  for (const [key, value] of [
    ['store', store],
    ['url', url],
    ['entityId', entityId],
  ] as const) {
    const text = validateString(key, value);
    const range = { start: at, end: at + (text === undefined ? scratch.write(String(value), at) : 0) };
    const problem = text ?? validateText(key, scratch, range);
    if (problem !== undefined) problems.push({ row: index, key, text: problem });
    ranges.push(range);
    at = range.end;
  }
  const [storeRange, urlRange, idRange] = ranges as [ByteRange, ByteRange, ByteRange];
  // In place of its line, which only a second parse would tell.
  if (problems.length === 0) builder.add(scratch, type, storeRange, urlRange, idRange, index + 1);
  return problems;
}

function validateString(key: string, value: unknown): string | undefined {
  if (value === undefined) return `${key} is missing`;
  if (typeof value !== 'string') return `${key} must be a string: put it in quotes`;
  if (value.length > 4096) return `${key} is too long`;
  return value.isWellFormed() ? undefined : `${key} is not well-formed Unicode`;
}

function parseJson(text: string, problems: ProblemList): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    const message = cause instanceof Error ? cause.message : String(cause);
    const position = Number(/position (\d+)/.exec(message)?.[1] ?? text.length);
    const before = text.slice(0, position);
    const col = position - before.lastIndexOf('\n');
    problems.add(before.split('\n').length, col, `not JSON: ${message.replace(/ in JSON at.*$/s, '')}`);
    return undefined;
  }
}

function parseYaml(text: string, problems: ProblemList): unknown {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  for (const error of document.errors) {
    const { line, col } = lines.linePos(error.pos[0]);
    problems.add(line, col, error.message);
  }
  return document.errors.length > 0 ? undefined : document.toJS();
}

/** Looks up the positions of rows and keys in the text, for a file with problems. JSON is parsed as YAML here. */
function place(found: readonly RowProblem[], text: string, problems: ProblemList): void {
  const lines = new LineCounter();
  const { contents } = parseDocument(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: false });
  for (const problem of found) {
    const row = isSeq(contents) && problem.row >= 0 ? contents.items[problem.row] : contents;
    const value = isMap(row) && problem.key !== undefined ? row.get(problem.key, true) : undefined;
    const node = isNode(value) ? value : row;
    const { line, col } = lines.linePos((isNode(node) && node.range?.[0]) || 0);
    problems.add(Math.max(1, line), Math.max(1, col), problem.text);
  }
}
