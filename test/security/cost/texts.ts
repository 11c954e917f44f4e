/** A text of about `length` characters that repeats one unit. */
export interface TextKind {
  readonly name: string;
  make(length: number): string;
}

/**
 * Characters that may be costly for parsers, which skip, split, decode, nest or fold them, or look for an end. No unit is
 * another one repeated: both runs would be the same text.
 */
const units = [
  ...' \t,"\'`\\09.-_:;=&/@#*+aZ~',
  ...'%ff % %2F %20 %CC%96%CC%80 %ff& url=%ff& %75rl& %E2%84%AA %25 [ ] { {"a": [{"a": ( <'.split(' '),
  ...'q= W/" "a", a, a=b; &a= &a[ &amp; \\" \\u00 name=" ../ http:// a. 1,'.split(' '),
  ...['- ', '? ', 'GET '],
  ...['\u00a0', '\u212a', '\u0316\u0300', 'é', '\ud800', '\ufdfa', '\u{1f600}', '\ufeff', '\u2028'],
  ...['\0', '\r\n', '\n', '\n ', '\r\n--'],
];

const other = 'x';

/** For each unit: its run alone, and with a letter before, after, on both sides and in the middle. */
export const textKinds: readonly TextKind[] = units.flatMap((unit) => {
  const run = (length: number) => unit.repeat(Math.max(1, Math.floor(length / unit.length)));
  const name = JSON.stringify(unit);
  return [
    { name: `a run of ${name}`, make: run },
    { name: `a run of ${name} in front of a letter`, make: (length) => run(length - 1) + other },
    { name: `a run of ${name} after a letter`, make: (length) => other + run(length - 1) },
    { name: `a run of ${name} between two letters`, make: (length) => other + run(length - 2) + other },
    { name: `a run of ${name} around a letter`, make: (length) => run(length / 2) + other + run(length / 2) },
  ];
});

/** Texts without a line break or NUL. */
export const lineKinds = textKinds.filter(({ make }) => !/[\0\r\n]/.test(make(8)));
/** Texts that a request target may contain. */
export const targetKinds = lineKinds.filter(({ make }) => /^[\x21-\x7e]+$/.test(make(8)));

/** A function or an exchange that reads text from outside. A new reader is one row in one of the lists beside this file. */
export interface Reader {
  readonly name: string;
  /** Longest text that the reader can get, in characters. */
  readonly limit: number;
  /** Length from which the text is read in slices; growth is measured from there. */
  readonly start?: number | undefined;
  /** The text is read in slices, in a worker thread, or before any request is served: only the growth of its cost counts. */
  readonly isBeside?: boolean | undefined;
  /** Texts to give to the reader. */
  readonly kinds: readonly TextKind[];
  read(text: string): unknown;
}

/** Readers by their names. */
export function readersOf(
  limit: number,
  kinds: readonly TextKind[],
  readers: Readonly<Record<string, Reader['read']>>,
  more: Partial<Reader> = {},
): Reader[] {
  return Object.entries(readers).map(([name, read]) => ({ name, limit, kinds, read, ...more }));
}
