import { type PackedPathTable, type PathRules, packPathTable } from '../routes/path-table.ts';
import {
  type ProtectedList,
  type ProtectedResource,
  type Rows,
  type RowSequence,
  readsParameters,
  resourceId,
  tableOfPacked,
} from './protected-list.ts';

/** What a row asks for; few rows of a list differ in it. */
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
 * A compiled list as arrays of numbers: 60,000 rows take some megabytes and no work of the garbage collector. One thread compiles
 * it; the processes that serve get a copy.
 */
export interface PackedList {
  readonly rows: PackedRows;
  readonly open: PackedRows;
  readonly table: PackedPathTable;
  readonly openTable: PackedPathTable;
}

/** Compiles a parsed list into arrays. */
export function packList({ rows, open = [] }: Rows, rules: PathRules): PackedList {
  const openRows = Array.from(open, (row) => ({ ...row, scopes: [], observe: false }));
  return {
    rows: packRows([...rows]),
    open: packRows(openRows),
    table: packPathTable([...rows], rules, readsParameters),
    openTable: packPathTable(openRows, rules),
  };
}

/** `file` is named as the source of the rows. */
export function openPackedList({ rows, open, table, openTable }: PackedList, file: string): ProtectedList {
  const parts = { rows: new UnpackedRows(rows, file), open: new UnpackedRows(open, file), terms: rows.terms };
  return tableOfPacked(parts, table, openTable);
}

function packRows(rows: readonly ProtectedResource[]): PackedRows {
  const starts = new Int32Array(rows.length + 1);
  const terms = new Map<string, { readonly index: number; readonly terms: RowTerms }>();
  const termsOf = new Int32Array(rows.length);
  let known = { index: 0, terms: {} as RowTerms };
  let last: RowTerms | undefined;
  for (const [rowIndex, row] of rows.entries()) {
    starts[rowIndex + 1] = (starts[rowIndex] as number) + resourceId(row).length;
    const { method, template, source, ...asked } = row;
    // Rows that follow one another mostly ask for the same; a key for each would take as long as the rest.
    if (last === undefined || !isSame(asked, last)) {
      const key = JSON.stringify(asked);
      known = terms.get(key) ?? { index: terms.size, terms: asked };
      terms.set(key, known);
    }
    last = asked;
    termsOf[rowIndex] = known.index;
  }
  return {
    text: new Uint8Array(Buffer.from(rows.map(resourceId).join(''), 'latin1')),
    ...{ starts, termsOf, terms: Array.from(terms.values(), (one) => one.terms) },
    lines: Int32Array.from(rows, ({ source }) => source.line),
    columns: Int32Array.from(rows, ({ source }) => source.column),
  };
}

/** Compares all that rows ask for, whatever its name, and lists by identity: what differs only needs a key of its own. */
function isSame(one: RowTerms, other: RowTerms): boolean {
  const names = Object.keys(one) as (keyof RowTerms)[];
  return names.length === Object.keys(other).length && names.every((name) => one[name] === other[name]);
}

/** Rows that were met lately are kept as objects. */
const maxKept = 1_000;

/** Makes each row when it is asked for. */
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
