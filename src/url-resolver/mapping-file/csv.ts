import { isUtf8 } from 'node:buffer';
import { contractEntityTypes } from '../envelope.ts';
import { type ProblemList, typeProblem, validateText } from './row-validation.ts';
import { type ByteRange, TableBuilder, type TableData } from './table.ts';

const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const quote = 0x22;
const chunkBytes = 1024 * 1024;
const maxRecordBytes = 64 * 1024;
const columns = ['url', 'entityType', 'entityId', 'store'] as const;
type Column = (typeof columns)[number];

/** Reads a CSV with a header (RFC 4180) piece by piece. `read` fills a buffer and returns the number of bytes, 0 at the end. */
export function readCsv(
  read: (into: Uint8Array) => number,
  size: number,
  problems: ProblemList,
  entityTypes: readonly string[] = contractEntityTypes,
): TableData | undefined {
  const reader = new CsvReader(size, problems, entityTypes);
  reader.readAll(read);
  return reader.finish();
}

class CsvReader {
  readonly #builder: TableBuilder;
  readonly #problems: ProblemList;
  readonly #typeProblem: string;
  readonly #typeBytes: readonly Uint8Array[];
  #buffer = Buffer.alloc(chunkBytes + maxRecordBytes);
  #order: Record<Column, number> | undefined;
  #columnCount = 0;
  #line = 1;
  #isBroken = false;
  /** Whether all complete records in the buffer are UTF-8; otherwise each is checked. */
  #isUtf8 = true;

  constructor(size: number, problems: ProblemList, entityTypes: readonly string[]) {
    this.#builder = new TableBuilder(size, entityTypes);
    this.#problems = problems;
    this.#typeProblem = typeProblem(entityTypes);
    this.#typeBytes = entityTypes.map((type) => Buffer.from(type));
  }

  readAll(read: (into: Uint8Array) => number): void {
    let filled = 0;
    let isFirst = true;
    while (!this.#isBroken) {
      const count = read(this.#buffer.subarray(filled, filled + chunkBytes));
      filled += count;
      // A byte order mark, which spreadsheets write.
      const start = isFirst && this.#buffer.readUIntBE(0, 3) === 0xefbbbf ? 3 : 0;
      isFirst = false;
      const used = this.#readRecords(start, filled);
      this.#buffer.copyWithin(0, used, filled);
      filled -= used;
      if (count === 0) break;
      if (filled > maxRecordBytes)
        this.#break('the record is longer than 64 KiB: a quote that is never closed?');
    }
    if (filled > 0 && !this.#isBroken) {
      this.#break(
        'the last line has no line break: the file may be only half written; add one if it is whole',
      );
    }
  }

  finish(): TableData | undefined {
    if (this.#order === undefined && this.#problems.isEmpty) {
      this.#problems.add(1, 1, 'the header is missing: url,entityType,entityId[,store]');
    }
    const data = this.#builder.finish((line, first) => {
      this.#problems.add(line, 1, `the same url and store as in line ${first}`);
    });
    if (data.rows === 0 && this.#problems.isEmpty) this.#problems.add(1, 1, 'no row');
    return this.#problems.isEmpty ? data : undefined;
  }

  /** Reads the complete records of [start, end). Returns where the incomplete one begins. */
  #readRecords(start: number, end: number): number {
    const buffer = this.#buffer.subarray(0, end);
    let at = start;
    this.#isUtf8 = isUtf8(buffer.subarray(start, Math.max(start, buffer.lastIndexOf(lineFeed))));
    let nextQuote = buffer.indexOf(quote, at);
    while (!this.#isBroken) {
      let recordEnd = buffer.indexOf(lineFeed, at);
      if (recordEnd < 0) break;
      let lines = 1;
      if (nextQuote >= 0 && nextQuote < recordEnd) {
        const closed = endOfQuoted(buffer, at);
        if (closed === undefined) break;
        recordEnd = closed.end;
        lines = closed.lines;
        nextQuote = buffer.indexOf(quote, recordEnd);
        this.#readRecord(at, recordEnd, true);
      } else {
        this.#readRecord(at, recordEnd, false);
      }
      this.#line += lines;
      at = recordEnd + 1;
    }
    return at;
  }

  #readRecord(start: number, lineEnd: number, isQuoted: boolean): void {
    const end = lineEnd > start && this.#buffer[lineEnd - 1] === carriageReturn ? lineEnd - 1 : lineEnd;
    if (end === start) return;
    if (!this.#isUtf8 && !isUtf8(this.#buffer.subarray(start, end))) {
      this.#problems.add(this.#line, 1, 'the line is not UTF-8');
      return;
    }
    // Splitting moves the bytes of a quoted record, so columns are counted on a copy.
    const copy = isQuoted ? Buffer.from(this.#buffer.subarray(start, end)) : undefined;
    const fields = splitRecord(this.#buffer, start, end, isQuoted);
    const record = { start, end, copy };
    if (typeof fields === 'string') this.#problems.add(this.#line, 1, fields);
    else if (this.#order === undefined) this.#readHeader(fields, record);
    else this.#readRow(fields, this.#order, record);
  }

  #readHeader(fields: readonly CsvField[], record: RecordBytes): void {
    const names = fields.map(({ start, end }) => this.#buffer.toString('utf8', start, end).trim());
    this.#columnCount = names.length;
    for (const [index, name] of names.entries()) {
      const col = this.#columnOf(fields[index] as CsvField, record);
      if (!(columns as readonly string[]).includes(name))
        this.#problems.add(this.#line, col, `unknown column ${name}`);
      else if (names.indexOf(name) !== index) this.#problems.add(this.#line, col, `column ${name} twice`);
    }
    for (const name of columns.slice(0, 3)) {
      if (!names.includes(name)) this.#problems.add(this.#line, 1, `column ${name} is missing`);
    }
    if (!this.#problems.isEmpty) this.#isBroken = true;
    this.#order = Object.fromEntries(columns.map((name) => [name, names.indexOf(name)])) as Record<
      Column,
      number
    >;
  }

  #readRow(fields: readonly CsvField[], order: Record<Column, number>, record: RecordBytes): void {
    if (fields.length !== this.#columnCount) {
      this.#problems.add(this.#line, 1, `${this.#columnCount} columns expected, ${fields.length} found`);
      return;
    }
    const url = fields[order.url] as CsvField;
    const type = fields[order.entityType] as CsvField;
    const id = fields[order.entityId] as CsvField;
    const store = order.store < 0 ? noField : (fields[order.store] as CsvField);
    const typeIndex = this.#typeBytes.findIndex((bytes) => isText(this.#buffer, type, bytes));
    const urlProblem = validateText('url', this.#buffer, url);
    const idProblem = validateText('entityId', this.#buffer, id);
    const storeProblem = validateText('store', this.#buffer, store);
    if (typeIndex >= 0 && (urlProblem ?? idProblem ?? storeProblem) === undefined) {
      this.#builder.add(this.#buffer, typeIndex, store, url, id, this.#line);
      return;
    }
    this.#report(url, urlProblem, record);
    this.#report(type, typeIndex < 0 ? this.#typeProblem : undefined, record);
    this.#report(id, idProblem, record);
    this.#report(store, storeProblem, record);
  }

  #report(field: CsvField, problem: string | undefined, record: RecordBytes): void {
    if (problem !== undefined) this.#problems.add(this.#line, this.#columnOf(field, record), problem);
  }

  #columnOf(field: CsvField, { start, copy }: RecordBytes): number {
    const before =
      copy === undefined
        ? this.#buffer.toString('utf8', start, field.origin)
        : copy.toString('utf8', 0, field.origin - start);
    return before.length + 1;
  }

  #break(text: string): void {
    this.#problems.add(this.#line, 1, text);
    this.#isBroken = true;
  }
}

function isText(bytes: Uint8Array, { start, end }: ByteRange, text: Uint8Array): boolean {
  if (text.length !== end - start) return false;
  for (let i = 0; i < text.length; i += 1) if (text[i] !== bytes[start + i]) return false;
  return true;
}

/** Where a record begins, and a copy of its bytes if they have been moved. */
interface RecordBytes {
  readonly start: number;
  readonly end: number;
  readonly copy: Buffer | undefined;
}

const noField: CsvField = { start: 0, end: 0, origin: 0 };

/** The end of a record with quotes: the first line feed outside them. Undefined: not in these bytes. */
function endOfQuoted(buffer: Buffer, start: number): { end: number; lines: number } | undefined {
  let isInside = false;
  let lines = 1;
  for (let i = start; i < buffer.length; i += 1) {
    const octet = buffer[i];
    if (octet === quote) isInside = !isInside;
    else if (octet === lineFeed) {
      if (!isInside) return { end: i, lines };
      lines += 1;
    }
  }
  return undefined;
}

/** A field's content, unescaped; `origin` is where it began before bytes were moved. */
interface CsvField extends ByteRange {
  readonly origin: number;
}

const comma = 0x2c;

/**
 * Splits the record in [start, end) into fields. Quoted fields are unescaped in place, which changes their bytes. A
 * string is the problem.
 */
function splitRecord(
  bytes: Uint8Array,
  start: number,
  end: number,
  isQuoted: boolean,
): readonly CsvField[] | string {
  return isQuoted ? splitQuoted(bytes, start, end) : splitPlain(bytes, start, end);
}

function splitPlain(bytes: Uint8Array, start: number, end: number): readonly CsvField[] {
  const fields: CsvField[] = [];
  let fieldStart = start;
  for (let i = start; i < end; i += 1) {
    if (bytes[i] !== comma) continue;
    fields.push({ start: fieldStart, end: i, origin: fieldStart });
    fieldStart = i + 1;
  }
  fields.push({ start: fieldStart, end, origin: fieldStart });
  return fields;
}

function splitQuoted(bytes: Uint8Array, start: number, end: number): readonly CsvField[] | string {
  const fields: CsvField[] = [];
  let at = start;
  for (;;) {
    const origin = at;
    let write = at;
    if (bytes[at] === quote) {
      const closed = unescapeQuoted(bytes, at + 1, end);
      if (closed === undefined) return 'a quote is not closed';
      write = closed.contentEnd;
      fields.push({ start: origin + 1, end: write, origin });
      at = closed.next;
      if (at < end && bytes[at] !== comma) return 'text after a closing quote';
    } else {
      while (at < end && bytes[at] !== comma) {
        if (bytes[at] === quote) return 'a quote inside a field that is not quoted';
        at += 1;
      }
      fields.push({ start: origin, end: at, origin });
    }
    if (at >= end) return fields;
    at += 1;
  }
}

/** Unescapes in place (`""` is one quote); `next` is the first byte after the closing quote. */
function unescapeQuoted(
  bytes: Uint8Array,
  start: number,
  end: number,
): { readonly contentEnd: number; readonly next: number } | undefined {
  let write = start;
  for (let i = start; i < end; i += 1) {
    if (bytes[i] === quote) {
      if (bytes[i + 1] !== quote || i + 1 >= end) return { contentEnd: write, next: i + 1 };
      i += 1;
    }
    bytes[write++] = bytes[i] as number;
  }
  return undefined;
}
