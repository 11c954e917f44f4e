import type { CanonicalRequest, Method } from './canonical-request.ts';

/** A row that a request meets. */
export interface PathMatch<T> {
  readonly data: T;
  /** Values of the template's `{name}`s, as they stand in the canonical path (not folded, not decoded). */
  readonly params: Readonly<Record<string, string>>;
  /** Met by the plain reading of the canonical path; `false` when only a lenient reading meets it. */
  readonly exact: boolean;
}

/** Rows of METHOD and path template, with the shop's own lenient reading of paths: see `buildPathTable`. */
export interface PathTable<T> {
  /** Every row that any reading of the request meets, exact ones first; the caller lets the strictest win. */
  match(
    request: Pick<CanonicalRequest, 'method' | 'path' | 'segments' | 'isFormPost'>,
  ): readonly PathMatch<T>[];
}

export interface PathTableRow<T> {
  readonly method: Method | 'ANY';
  /** Path of literals, `{name}`s and perhaps a last `**`. */
  readonly template: string;
  readonly data: T;
}
