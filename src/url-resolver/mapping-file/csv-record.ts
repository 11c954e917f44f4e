import type { ByteRange } from './table-builder.ts';

/** A field's content, unescaped, and where it began in the record as it was. */
export interface CsvField extends ByteRange {
  readonly origin: number;
}

const comma = 0x2c;
const quote = 0x22;

/**
 * Splits the record in [start, end) into fields. Quoted fields are unescaped where they stand, so the bytes of such a
 * record change. A string is the problem.
 */
export function splitRecord(
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

/** Moves the content together (`""` is one quote); `next` is the first byte after the closing quote. */
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
