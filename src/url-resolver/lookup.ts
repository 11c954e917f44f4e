import type { Mapping } from './mapping.ts';
import type { Partition } from './request/partition.ts';
import type { Provenance } from './response/write-answer.ts';
import type { SourceFailure } from './sources/verdict.ts';

/** What a request wants to know: a URL in a partition. */
export interface Lookup {
  readonly url: string;
  readonly partition: Partition;
  /** From `mappingKey`; undefined: asked uncached. */
  readonly key: string | undefined;
}

/** What came of it, ready to be written. */
export type LookupResult =
  | {
      readonly kind: 'known';
      readonly mapping: Mapping;
      readonly tag: string;
      readonly provenance: Provenance;
    }
  | { readonly kind: 'unknown'; readonly provenance: Provenance }
  | { readonly kind: 'missing' }
  | SourceFailure;
