import { openPathTable, type PackedPathTable, type PathRules, packPathTable } from '../routes/path-table.ts';
import {
  type ProtectedList,
  type ProtectedResource,
  type RowSequence,
  type Rows,
  readsParameters,
  resourceId,
  rowOf,
  tableOfPacked,
} from './protected-list.ts';
import { coverOfTable, type RowCover } from './protected-list-cover.ts';

/** What a row requires. Most rows of a list require the same. */
type RowTerms = Omit<ProtectedResource, 'method' | 'template' | 'source'>;

interface PackedRows {
  /** `METHOD /template` of each row, which is ASCII. */
  readonly text: Uint8Array;
  /** Row -> where its text begins; one more for the end of the last one. */
  readonly starts: Int32Array;
  readonly lines: Int32Array;
  readonly columns: Int32Array;
  /** Row -> what it asks for, as an index of `terms`. */
  readonly termsOf: Int32Array;
  readonly terms: readonly RowTerms[];
}

/**
 * A compiled list as arrays of numbers: 60,000 rows take some megabytes and cost the garbage collector nothing. One process
 * compiles the list; the others get a copy.
 */
export interface PackedList {
  readonly rows: PackedRows;
  readonly open: PackedRows;
  readonly table: PackedPathTable;
  readonly openTable: PackedPathTable;
}

export function packList({ rows, open = [] }: Rows, rules: PathRules): PackedList {
  const openRows = Array.from(open, (row) => ({ ...row, scopes: [], observe: false }));
  return {
    rows: packRows([...rows]),
    open: packRows(openRows),
    table: packPathTable([...rows], rules, readsParameters),
    openTable: packPathTable(openRows, rules),
  };
}

/** Compiles a parsed list for this process alone. */
export function compileProtectedList(list: Rows, rules: PathRules): ProtectedList {
  return openPackedList(packList(list, rules), list.rows[0]?.source.file ?? '');
}

/** `file` is named as the source of the rows. */
export function openPackedList({ table, openTable, ...packed }: PackedList, file: string): ProtectedList {
  return tableOfPacked({ ...openRows(packed, file), terms: packed.rows.terms }, table, openTable);
}

export function openRows({ rows, open }: Pick<PackedList, 'rows' | 'open'>, file: string) {
  return { rows: new UnpackedRows(rows, file), open: new UnpackedRows(open, file) };
}

export function coverOfPacked({ rows, table }: PackedList): RowCover {
  return coverOfTable(openPathTable(table, rowOf(new UnpackedRows(rows, ''))));
}

function packRows(rows: readonly ProtectedResource[]): PackedRows {
  const starts = new Int32Array(rows.length + 1);
  const terms: RowTerms[] = [];
  const termsOf = new Int32Array(rows.length);
  const numberOf = numberTerms((asked) => terms.push(asked));
  for (const [rowIndex, row] of rows.entries()) {
    starts[rowIndex + 1] = (starts[rowIndex] as number) + resourceId(row).length;
    termsOf[rowIndex] = numberOf(row);
  }
  return {
    text: new Uint8Array(Buffer.from(rows.map(resourceId).join(''), 'latin1')),
    ...{ starts, termsOf, terms },
    lines: Int32Array.from(rows, ({ source }) => source.line),
    columns: Int32Array.from(rows, ({ source }) => source.column),
  };
}

/** Numbers the terms of rows from 0; equal terms have the same number. `onNew` gets each once. */
export function numberTerms(onNew: (terms: RowTerms) => unknown = () => {}) {
  const numbers = new Map<string, number>();
  let number = 0;
  let last: RowTerms | undefined;
  return ({ method, template, source, ...asked }: ProtectedResource): number => {
    // Consecutive rows mostly have the same terms; making a key for each would double the time.
    if (last !== undefined && isSame(asked, last)) return number;
    last = asked;
    const key = JSON.stringify(asked);
    number = numbers.get(key) ?? numbers.size;
    if (number === numbers.size) {
      numbers.set(key, number);
      onNew(asked);
    }
    return number;
  };
}

/** Compares all terms; lists are compared by identity, and a wrong `false` only costs a key. */
function isSame(one: RowTerms, other: RowTerms): boolean {
  const names = Object.keys(one) as (keyof RowTerms)[];
  return names.length === Object.keys(other).length && names.every((name) => one[name] === other[name]);
}

/** Maximum number of rows that are kept as objects after their use. */
const maxKept = 1_000;

class UnpackedRows implements RowSequence<ProtectedResource> {
  readonly length: number;
  readonly #packed: PackedRows;
  readonly #text: Buffer;
  readonly #file: string;
  readonly #kept = new Map<number, ProtectedResource>();

  constructor(packed: PackedRows, file: string) {
    const { buffer, byteOffset, byteLength } = packed.text;
    this.length = packed.lines.length;
    this.#packed = packed;
    this.#text = Buffer.from(buffer, byteOffset, byteLength);
    this.#file = file;
  }

  at(rowIndex: number): ProtectedResource | undefined {
    if (rowIndex < 0 || rowIndex >= this.length) return undefined;
    const known = this.#kept.get(rowIndex);
    if (known !== undefined) return known;
    if (this.#kept.size === maxKept) this.#kept.clear();
    const row = this.#make(rowIndex);
    this.#kept.set(rowIndex, row);
    return row;
  }

  *[Symbol.iterator](): Iterator<ProtectedResource> {
    for (let rowIndex = 0; rowIndex < this.length; rowIndex += 1) yield this.#make(rowIndex);
  }

  #make(rowIndex: number): ProtectedResource {
    const { starts, lines, columns, termsOf, terms } = this.#packed;
    const id = this.#text.toString('latin1', starts[rowIndex], starts[rowIndex + 1]);
    const space = id.indexOf(' ');
    return {
      ...(terms[termsOf[rowIndex] as number] as RowTerms),
      method: id.slice(0, space) as ProtectedResource['method'],
      template: id.slice(space + 1),
      source: { file: this.#file, line: lines[rowIndex] as number, column: columns[rowIndex] as number },
    };
  }
}
