import type { TextKind } from './texts.ts';

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
