import type { Mapping } from '../mapping.ts';

/** What a source said about one URL, checked. */
export type Verdict =
  /** `keep` false: the reply forbade to store it. */
  | { readonly kind: 'found'; readonly mapping: Mapping; readonly keep: boolean }
  | { readonly kind: 'unknown'; readonly keep: boolean }
  /** The shop counts the value as no value (422, code 2801: `0`, say). */
  | { readonly kind: 'missing' }
  | SourceFailure;

/** Nothing was learnt: nothing is kept. */
export interface SourceFailure {
  readonly kind: 'failed';
  readonly fault: 'unreachable' | 'timeout' | 'invalid' | 'overloaded';
  /** Stable word for logs and metrics. */
  readonly reason: string;
}

export function fail(fault: SourceFailure['fault'], reason: string): SourceFailure {
  return { kind: 'failed', fault, reason };
}
