import { type Document, isMap, isSeq } from 'yaml';
import { offsetOf, parseYaml } from '../../lib/yaml-source.ts';
import { halfWritten } from './read-csv.ts';
import { createRowSchema, type ProblemList, problemsOf } from './row-schema.ts';
import type { TableBuilder } from './table.ts';

/** Where the rows of a document are. */
interface Rows {
  readonly value: unknown;
  /** Adds a problem of a row, or of one of its members. Row -1 is the document. */
  report(row: number, key: string | undefined, text: string): void;
}

/** Reads a list of rows in JSON or YAML into `builder`. Returns how to report a problem of a row. */
export function readDocument(
  text: string,
  format: 'json' | 'yaml',
  entityTypes: readonly string[],
  builder: TableBuilder,
  problems: ProblemList,
): Rows['report'] | undefined {
  // A YAML list that is cut off after any line is still a YAML list.
  if (format === 'yaml' && text.trim() !== '' && !text.endsWith('\n')) {
    problems.add(1, 1, halfWritten);
    return undefined;
  }
  const rows = format === 'json' ? parseJson(text, problems) : parseYamlRows(text, problems);
  if (rows === undefined) return undefined;
  if (!Array.isArray(rows.value)) {
    rows.report(-1, undefined, 'a list of rows is expected');
    return undefined;
  }
  const schema = createRowSchema(entityTypes);
  for (const [index, given] of rows.value.entries()) {
    const row = schema.safeParse(given);
    // The builder gets the number of the row: its line takes another parse.
    if (row.success) builder.add(row.data, index + 1);
    else for (const { key, text: problem } of problemsOf(row.error)) rows.report(index, key, problem);
  }
  return rows.report;
}

function parseJson(text: string, problems: ProblemList): Rows | undefined {
  try {
    const value: unknown = JSON.parse(text);
    // Parsed again, as YAML, for positions; only for a file with problems.
    let placed: Rows | undefined;
    return {
      value,
      report(row, key, problem) {
        placed ??= parseYamlRows(text, problems);
        placed?.report(row, key, problem);
      },
    };
  } catch (cause) {
    const message = cause instanceof Error ? cause.message : String(cause);
    const [, line, column] = /line (\d+) column (\d+)/.exec(message) ?? [];
    const lastLine = text.split('\n').length;
    problems.add(
      Number(line ?? lastLine),
      Number(column ?? 1),
      `not JSON: ${message.split(' in JSON', 1)[0]}`,
    );
    return undefined;
  }
}

function parseYamlRows(text: string, problems: ProblemList): Rows | undefined {
  const { document, fault, problemAt } = parseYaml(text, '', false);
  const add = (offset: number, problem: string) => {
    const { line, column } = problemAt(offset, problem);
    problems.add(line, column, problem);
  };
  if (fault !== undefined) {
    problems.add(fault.line, fault.column, fault.text);
    return undefined;
  }
  for (const error of document.errors) add(error.pos[0], error.message);
  if (document.errors.length > 0) return undefined;
  return {
    value: document.toJS(),
    report: (row, key, problem) => add(offsetIn(document.contents, row, key), problem),
  };
}

function offsetIn(contents: Document.Parsed['contents'], index: number, key: string | undefined): number {
  const row = isSeq(contents) && index >= 0 ? contents.items[index] : contents;
  const value = isMap(row) && key !== undefined ? row.get(key, true) : undefined;
  return offsetOf(value, offsetOf(row));
}
