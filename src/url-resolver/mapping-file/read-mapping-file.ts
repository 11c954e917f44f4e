import { createReadStream } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { extname } from 'node:path';
import { checkReadable, decodeText, readStamp } from '../../lib/watched-file.ts';
import { contractEntityTypes } from '../envelope.ts';
import { readCsv } from './read-csv.ts';
import { readDocument } from './read-document.ts';
import { type PlacedProblem, ProblemList } from './row-schema.ts';
import { TableBuilder, type TableData } from './table.ts';

export type FileReading =
  | { readonly kind: 'table'; readonly data: TableData }
  | { readonly kind: 'problems'; readonly problems: readonly PlacedProblem[] };

const maxDocumentBytes = 10 * 1024 * 1024;
const attempts = 20;

/**
 * Reads a mapping file. It is accepted once its stamp is the same from `settle` before the reading to its end, so that a
 * half-written file is not taken for a whole one.
 */
export async function readMappingFile(
  path: string,
  settle: () => Promise<unknown>,
  entityTypes: readonly string[] = contractEntityTypes,
): Promise<FileReading> {
  let before = await stampOf(path);
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    await settle();
    const fault = await checkReadable(path);
    if (fault !== undefined) return refuse(fault);
    const reading = await readOnce(path, entityTypes);
    const after = await stampOf(path);
    if (after === before) return reading;
    before = after;
  }
  return refuse('it keeps changing');
}

async function stampOf(path: string): Promise<string> {
  const stamp = await readStamp(path);
  return 'bytes' in stamp ? stamp.bytes.toString() : stamp.fault;
}

async function readOnce(path: string, entityTypes: readonly string[]): Promise<FileReading> {
  const problems = new ProblemList();
  const builder = new TableBuilder(entityTypes);
  let reportRow: ReturnType<typeof readDocument>;
  const extension = extname(path).toLowerCase();
  try {
    if (extension === '.csv') {
      const chunks = createReadStream(path, { highWaterMark: 1024 * 1024 });
      await readCsv(chunks, entityTypes, builder, problems);
    } else {
      if ((await stat(path)).size > maxDocumentBytes)
        return refuse('larger than 10 MB: use CSV, which is read piece by piece');
      const decoded = decodeText(await readFile(path));
      if ('fault' in decoded) return refuse(decoded.fault);
      const format = extension === '.json' ? 'json' : 'yaml';
      reportRow = readDocument(decoded.text, format, entityTypes, builder, problems);
    }
    const data = builder.finish((line, first) => {
      if (reportRow === undefined) problems.add(line, 1, `the same url and store as in line ${first}`);
      else reportRow(line - 1, 'url', `the same url and store as in row ${first} of the list`);
    });
    if (data.rows === 0 && problems.isEmpty) problems.add(1, 1, 'no row');
    return problems.isEmpty ? { kind: 'table', data } : { kind: 'problems', problems: problems.list() };
  } catch (cause) {
    // The file went away, or its aliases are a bomb.
    return refuse(String(cause));
  }
}

function refuse(text: string): FileReading {
  return { kind: 'problems', problems: [{ line: 1, column: 1, severity: 'error', text }] };
}
