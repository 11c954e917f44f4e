import type { TextKind } from './texts.ts';

/** A function or an exchange that reads text from outside. A new reader is one row in one of the lists beside this file. */
export interface Reader {
  readonly name: string;
  /** Longest text that gets there, in characters. */
  readonly limit: number;
  /** Length from which the text is read in slices; growth is looked for from there. */
  readonly start?: number | undefined;
  /** It is read in slices, in a thread, or before any request is served: only its growth counts. */
  readonly isBeside?: boolean | undefined;
  /** Texts that may stand there. */
  readonly kinds: readonly TextKind[];
  read(text: string): unknown;
}
