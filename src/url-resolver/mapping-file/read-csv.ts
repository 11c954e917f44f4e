import { pipeline } from 'node:stream/promises';
import { type CsvError, type InfoRecord, parse } from 'csv-parse';
import { columns, createRowSchema, type ProblemList, problemsOf } from './row-schema.ts';
import type { TableBuilder } from './table.ts';

const maxRecordBytes = 64 * 1024;

/** A record with the text that it was read from, which may begin with line breaks. */
interface RawRecord {
  readonly record: readonly string[];
  readonly raw: string;
}

/** Reads a CSV with a header (RFC 4180) into `builder`, of any length. */
export async function readCsv(
  chunks: AsyncIterable<Uint8Array>,
  entityTypes: readonly string[],
  builder: TableBuilder,
  problems: ProblemList,
): Promise<void> {
  const schema = createRowSchema(entityTypes);
  let header: readonly string[] | undefined;
  let isHeaderGood = true;
  /** Of the last record. */
  let lastLine = 0;
  const read = ({ record: fields, raw }: RawRecord, { lines }: InfoRecord) => {
    const record = raw.replace(/^[\r\n]+/, '');
    // A value may have line breaks, which is a problem of its own.
    const line = lines - (record.trimEnd().split('\n').length - 1);
    lastLine = lines;
    if (header === undefined) {
      header = fields.map((name) => name.trim());
      isHeaderGood = checkHeader(header, record, line, problems);
    } else if (isHeaderGood && fields.length !== header.length) {
      problems.add(line, 1, `${header.length} columns expected, ${fields.length} found`);
    } else if (isHeaderGood) {
      const row = schema.safeParse(Object.fromEntries(header.map((name, i) => [name, fields[i]])));
      if (row.success) builder.add(row.data, line);
      else
        for (const { key = '', text } of problemsOf(row.error))
          problems.add(line, columnOf(record, header.indexOf(key)), text);
    }
    return null;
  };
  const parser = parse({
    ...{ bom: true, raw: true, skip_empty_lines: true, relax_column_count: true },
    ...{ max_record_size: maxRecordBytes, record_delimiter: ['\n', '\r\n'] },
    // Otherwise the first problem would be the only one.
    skip_records_with_error: true,
    on_skip: (error) => {
      if (error === undefined) return;
      const isOpen = error.code === 'CSV_QUOTE_NOT_CLOSED' || error.code === 'CSV_MAX_RECORD_SIZE';
      problems.add(isOpen ? lastLine + 1 : Number(error.lines), 1, textOf(error));
      lastLine = Number(error.lines);
    },
    // The types of csv-parse know no record with its text.
    on_record: (given, info) => read(given as unknown as RawRecord, info),
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
  if (lastOctet !== undefined && lastOctet !== 0x0a) {
    problems.add(Math.max(1, parser.info.lines), 1, halfWritten);
  }
  if (header === undefined && problems.isEmpty) {
    problems.add(1, 1, 'the header is missing: url,entityType,entityId[,store]');
  }
}

export const halfWritten =
  'the last line has no line break: the file may be only half written; add one if it is whole';

function checkHeader(
  header: readonly string[],
  record: string,
  line: number,
  problems: ProblemList,
): boolean {
  for (const [index, name] of header.entries()) {
    const isKnown = (columns as readonly string[]).includes(name);
    if (!isKnown) problems.add(line, columnOf(record, index), `unknown column ${name}`);
    else if (header.indexOf(name) !== index)
      problems.add(line, columnOf(record, index), `column ${name} twice`);
  }
  for (const name of columns.slice(0, 3)) {
    if (!header.includes(name)) problems.add(line, 1, `column ${name} is missing`);
  }
  return problems.isEmpty;
}

/** Column, from 1, at which a field of a record begins. */
function columnOf(record: string, index: number): number {
  const field = /(?:"(?:[^"]|"")*"|[^,"]*),/y;
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
