import type { FairSemaphore } from '../lib/fair-semaphore.ts';
import type { WatchOptions } from '../lib/watched-file.ts';
import type { Lifetimes } from './local-cache.ts';
import type { FileEvent, FileState } from './mapping-file/mapping-file.ts';
import type { PurgeLog } from './purges.ts';
import type { AskUpstream } from './source.ts';

/** Times are in milliseconds; docs/configuration.md says what they mean to a shop. */
export interface UrlResolverOptions {
  /** Path of the shop's resolver. */
  readonly path: string;
  /** `{base_url}` of `links.self`, without a slash at its end; left out: scheme and Host of the request. */
  readonly publicUrl?: string | undefined;
  /** The first one is the default. */
  readonly locales: readonly string[];
  /** Known values of `Store` and `_store`. */
  readonly stores: readonly string[];
  /** The shop gets the client's Host (`upstream.forwardHost`) and chooses its store by it. */
  readonly storeByHost: boolean;
  /** Types that a URL may lead to. */
  readonly entityTypes: readonly string[];
  /** At least one of `upstream` and `mappingFile` is required; with both the file is asked first. */
  readonly upstream?:
    | {
        readonly ask: AskUpstream;
        /** Longest wait for an answer, including the wait for a permit. */
        readonly timeoutMs: number;
        readonly permits: Pick<FairSemaphore, 'acquire'>;
      }
    | undefined;
  readonly mappingFile?: ({ readonly path: string } & Pick<WatchOptions, 'pollMs' | 'stableMs'>) | undefined;
  readonly lifetimes: Lifetimes;
  /** Longest wait for the source where there is a stale copy. Default 1000. */
  readonly staleWaitMs?: number;
  /** Maximum number of entries of this process. */
  readonly maxEntries: number;
  /** Left out: nothing is shared with other processes. */
  readonly purgeLog?: PurgeLog | undefined;
  readonly onEvent?: (event: ResolverEvent) => void;
  /** Monotonic clock, in milliseconds. Default `performance.now`. */
  readonly now?: () => number;
}

/** Counts since the start. The names are stable, for metrics and console. */
export const startCounts = () => ({
  /** Answers from this process: fresh mappings, fresh "not found", and stale ones. */
  hits: 0,
  notFoundHits: 0,
  staleHits: 0,
  /** Answers from the mapping file, found or not. */
  fileAnswers: 0,
  /** Requests that waited for the source, including those that joined a lookup. */
  misses: 0,
  /** Lookups at the source, and failed ones. */
  lookups: 0,
  failures: 0,
  /** Requests that were forwarded, because the shop has an answer of another form. */
  passedOn: 0,
});

export type ResolverCounts = ReturnType<typeof startCounts>;

export interface ResolverStats extends Readonly<ResolverCounts> {
  /** Entries in this process, and lookups under way. */
  readonly entries: number;
  readonly lookupsUnderWay: number;
  /** Undefined without a mapping file. */
  readonly file: FileState | undefined;
}

/** Events that are logged. */
export type ResolverEvent =
  | { readonly kind: 'source-failed'; readonly fault: string; readonly reason: string }
  | { readonly kind: 'source-exception'; readonly err: unknown }
  | { readonly kind: 'forgotten' }
  | FileEvent;
