import { createReadStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { type CsvError, type InfoRecord, parse } from 'csv-parse';
import type { Problem } from '../../lib/problem.ts';
import { checkReadable, readStamp } from '../../lib/watched-file.ts';
import { controlCharacter, maxUrlBytes } from '../envelope.ts';
import { longestStore } from '../partition.ts';
import { TableBuilder, type TableData } from './table.ts';

/** A problem and its position, without the name of the file. */
type PlacedProblem = Omit<Problem, 'file'>;

/** The table, or the problems of the file. */
export type FileReading = TableData | { readonly problems: readonly PlacedProblem[] };

const attempts = 20;

/**
 * Reads a mapping file (CSV with a header, RFC 4180) of any length. It is accepted if its stamp does not change from the call
 * of `stable` to the end of the reading, so that a half-written file is not taken for a whole one.
 */
export async function readMappingFile(
  path: string,
  stable: () => Promise<unknown>,
  entityTypes: readonly string[],
): Promise<FileReading> {
  let before = await stampOf(path);
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    await stable();
    const fault = await checkReadable(path);
    if (fault !== undefined) return refuse(fault);
    const chunks = createReadStream(path, { highWaterMark: 1024 * 1024 });
    const reading = await readCsv(chunks, entityTypes).catch((cause) => refuse(String(cause)));
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

function refuse(text: string): FileReading {
  return { problems: [{ line: 1, column: 1, severity: 'error', text }] };
}

/** The columns, in the order in which they are documented; the last one may be left out. */
const columns = ['url', 'entityType', 'entityId', 'store'];
const maxRecordBytes = 64 * 1024;

/** Exported for its tests. */
export async function readCsv(
  chunks: AsyncIterable<Uint8Array>,
  entityTypes: readonly string[],
): Promise<FileReading> {
  const problems = new ProblemList();
  const builder = new TableBuilder(entityTypes);
  let header: readonly string[] | undefined;
  let isHeaderGood = true;
  await parseRecords(chunks, problems, (fields, record, line) => {
    const complain = (index: number, text: string) => problems.add(line, columnOf(record, index), text);
    if (header === undefined) {
      header = fields.map((name) => name.trim());
      checkHeader(header, complain);
      isHeaderGood = problems.isEmpty;
    } else if (isHeaderGood && fields.length !== header.length) {
      complain(0, `${header.length} columns expected, ${fields.length} found`);
    } else if (isHeaderGood) {
      const row = { url: '', entityType: '', entityId: '', store: '' };
      const faults = header.map((name, index) => {
        row[name as keyof typeof row] = fields[index] ?? '';
        return findProblem(name, fields[index] ?? '', entityTypes);
      });
      for (const [index, fault] of faults.entries())
        if (fault !== undefined) complain(index, `${header[index]} ${fault}`);
      if (faults.every((fault) => fault === undefined)) builder.add(row, line);
    }
  });
  if (header === undefined && problems.isEmpty)
    problems.add(1, 1, 'the header is missing: url,entityType,entityId[,store]');
  const data = builder.finish((line, first) =>
    problems.add(line, 1, `the same url and store as in line ${first}`),
  );
  if (data.rows === 0 && problems.isEmpty) problems.add(1, 1, 'no row');
  return problems.isEmpty ? data : { problems: problems.list() };
}

/** Calls `onRecord` with the fields of each record, its text, and the line at which it begins. */
async function parseRecords(
  chunks: AsyncIterable<Uint8Array>,
  problems: ProblemList,
  onRecord: (fields: readonly string[], record: string, line: number) => void,
): Promise<void> {
  let lastLine = 0;
  const parser = parse({
    ...{ bom: true, raw: true, skip_empty_lines: true, relax_column_count: true },
    ...{ max_record_size: maxRecordBytes, record_delimiter: ['\n', '\r\n'] },
    // Without this the parser stops at the first problem.
    skip_records_with_error: true,
    on_skip: (error) => {
      if (error === undefined) return;
      const isOpen = error.code === 'CSV_QUOTE_NOT_CLOSED' || error.code === 'CSV_MAX_RECORD_SIZE';
      problems.add(isOpen ? lastLine + 1 : Number(error.lines), 1, textOf(error));
      lastLine = Number(error.lines);
    },
    on_record: (given, { lines }: InfoRecord) => {
      // The types of csv-parse lack the record with its text.
      const { record: fields, raw } = given as unknown as { record: readonly string[]; raw: string };
      const record = raw.replace(/^[\r\n]+/, '');
      lastLine = lines;
      // A value may have line breaks, which is a problem of its own.
      onRecord(fields, record, lines - (record.trimEnd().split('\n').length - 1));
      return null;
    },
  });
  let lastOctet: number | undefined;
  const watched = async function* () {
    for await (const chunk of chunks) {
      lastOctet = chunk.at(-1) ?? lastOctet;
      yield chunk;
    }
  };
  parser.resume();
  await pipeline(watched, parser);
  if (lastOctet === undefined || lastOctet === 0x0a) return;
  const text = 'the last line has no line break: the file may be only half written; add one if it is whole';
  problems.add(Math.max(1, parser.info.lines), 1, text);
}

function checkHeader(header: readonly string[], complain: (index: number, text: string) => void): void {
  for (const [index, name] of header.entries()) {
    if (!columns.includes(name)) complain(index, `unknown column ${name}`);
    else if (header.indexOf(name) !== index) complain(index, `column ${name} twice`);
  }
  for (const name of columns.slice(0, 3)) {
    if (!header.includes(name)) complain(0, `column ${name} is missing`);
  }
}

/** Bytes of the shortest and longest value. */
const bytesOf: Readonly<Record<string, readonly [min: number, max: number]>> = {
  url: [1, maxUrlBytes],
  entityId: [1, 255],
  store: [0, longestStore],
};

function findProblem(name: string, value: string, entityTypes: readonly string[]): string | undefined {
  const [min, max] = bytesOf[name] ?? [];
  if (min === undefined || max === undefined)
    return entityTypes.includes(value) ? undefined : `must be one of ${entityTypes.join(', ')}`;
  if (value.length < min) return 'is empty';
  if (Buffer.byteLength(value) > max) return `is longer than ${max} bytes`;
  if (controlCharacter.test(value)) return 'has a control character';
  if (value.startsWith(' ') || value.endsWith(' ')) return 'has spaces around it';
  // The parser writes U+FFFD for octets that are not UTF-8.
  return value.includes('\ufffd') ? 'is not UTF-8' : undefined;
}

/** Column, from 1, at which a field of a record begins. */
function columnOf(record: string, index: number): number {
  const field = /(?:"(?:[^"]|"")*"|[^,]*),/y;
  for (let i = 0; i < index; i += 1) field.test(record);
  return field.lastIndex + 1;
}

const texts: Readonly<Record<string, string>> = {
  CSV_MAX_RECORD_SIZE: 'the record is longer than 64 KiB: a quote that is never closed?',
  CSV_QUOTE_NOT_CLOSED: 'a quote is not closed',
  CSV_INVALID_CLOSING_QUOTE: 'text after a closing quote, or a quote inside a field that is not quoted',
  INVALID_OPENING_QUOTE: 'a quote inside a field that is not quoted',
};

function textOf({ code, message }: CsvError): string {
  return texts[code] ?? message;
}

/** Problems that are listed; the rest is counted. */
const longestList = 100;

class ProblemList {
  readonly #problems: PlacedProblem[] = [];
  #count = 0;

  get isEmpty(): boolean {
    return this.#count === 0;
  }

  add(line: number, column: number, text: string): void {
    this.#count += 1;
    if (this.#count <= longestList) this.#problems.push({ line, column, severity: 'error', text });
  }

  /** In the order of the file. */
  list(): readonly PlacedProblem[] {
    const sorted = this.#problems.toSorted((a, b) => a.line - b.line || a.column - b.column);
    const last = sorted.at(-1);
    const left = this.#count - sorted.length;
    return left === 0 || last === undefined
      ? sorted
      : [...sorted, { ...last, text: `and ${left} more problems` }];
  }
}
