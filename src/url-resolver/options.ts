import type { WatchOptions } from '../lib/watched-file.ts';
import type { PathRules } from '../routes/path-table.ts';
import type { EnvelopePointers } from './envelope.ts';
import type { EpochStore } from './epoch-follower.ts';
import type { Lifetimes } from './local-cache.ts';
import type { FileEvent, FileState } from './mapping-file/mapping-file.ts';
import type { SharedMapping } from './shared-cache.ts';
import type { AskUpstream, LookupTurns } from './source.ts';

/** Times are in milliseconds; docs/configuration.md says what they mean to a shop. */
export interface UrlResolverOptions {
  /** Canonical path, the same at the shop. Default `/url-resolver`. */
  readonly path?: string;
  /** The settings of `request`, so that a prefix which the shop ignores is no way past `path`. Default: none. */
  readonly paths?: PathRules;
  /** `{base_url}` of `links.self`, without a slash at its end; left out: scheme and Host of the request. */
  readonly publicUrl?: string | undefined;
  /** The first one is the default. Default `['en', 'de']`. */
  readonly locales?: readonly string[];
  /** Known values of `Store` and `_store`. Default none. */
  readonly stores?: readonly string[];
  /** The shop gets the client's Host (`upstream.forwardHost`) and chooses its store by it. Default false. */
  readonly storeByHost?: boolean;
  /** Types that a URL may lead to. Default: those of the contract. */
  readonly entityTypes?: readonly string[];
  /** Form of the documents, the shop's and ours. Default `jsonapi`, that of the contract. */
  readonly envelope?: 'jsonapi' | EnvelopePointers;
  /** At least one of `upstream` and `mappingFile` is required; with both the file is asked first. */
  readonly upstream?:
    | {
        readonly ask: AskUpstream;
        /** Longest wait for an answer, with the wait for a turn. Default 10,000. */
        readonly timeoutMs?: number;
        /** Default: every look-up has its turn at once. */
        readonly turns?: LookupTurns;
        /** The client that an address stands for. Default: the address. */
        readonly clientOf?: (address: string) => string;
      }
    | undefined;
  readonly mappingFile?: ({ readonly path: string } & Pick<WatchOptions, 'pollMs' | 'settleMs'>) | undefined;
  /** Defaults: 5 min, 30 s, 1 min, 24 h. */
  readonly lifetimes?: Partial<Lifetimes>;
  /** Longest wait for the source where there is a stale copy. Default 1000. */
  readonly staleWaitMs?: number;
  /** Entries of this process; there are four times as many shared slots. Default 100,000. */
  readonly maxEntries?: number;
  /** Left out: nothing is shared with other processes. */
  readonly shared?:
    | {
        readonly mappings: SharedMapping;
        readonly epochs: EpochStore;
        /** Longest wait for the shared copies. Default 100. */
        readonly timeoutMs?: number;
      }
    | undefined;
  readonly onEvent?: (event: ResolverEvent) => void;
  /** Monotonic clock, in milliseconds. Default `performance.now`. */
  readonly now?: () => number;
  /** Milliseconds since 1970, by which processes tell each other the age of a copy. Default `Date.now`. */
  readonly wallClock?: () => number;
}

export const defaultLifetimes: Lifetimes = {
  ttlMs: 300_000,
  notFoundTtlMs: 30_000,
  staleWhileRevalidateMs: 60_000,
  staleIfErrorMs: 86_400_000,
};

/** Counts since the start. The names are stable, for metrics and console. */
const noCounts = {
  /** Answers from this process: fresh mappings, fresh "not found", and stale ones. */
  hits: 0,
  notFoundHits: 0,
  staleHits: 0,
  /** Answers from the copies that replicas share. */
  sharedHits: 0,
  /** Answers from the mapping file, found or not. */
  fileAnswers: 0,
  /** Requests that waited for the source, including those that joined a lookup. */
  misses: 0,
  /** Of these, requests that joined a lookup under way. */
  collapsed: 0,
  /** Requests for a store that is not configured. */
  bypasses: 0,
  /** Lookups at the source; failed ones; and successful ones whose answer is not kept. */
  lookups: 0,
  failures: 0,
  notKept: 0,
  /** Requests that were forwarded, because the shop has an answer of another form. */
  passedOn: 0,
  /** Requests without a usable `url`. */
  missing: 0,
  unusable: 0,
  /** Times that every entry was dropped because purges may have been lost. */
  forgotten: 0,
};

export type ResolverCounts = typeof noCounts;

export function startCounts(): ResolverCounts {
  return { ...noCounts };
}

export interface ResolverStats extends Readonly<ResolverCounts> {
  /** Entries in this process, lookups under way, and keys that wait for one. */
  readonly entries: number;
  readonly lookupsUnderWay: number;
  readonly keysUnderWay: number;
  /** Whether the shared copies cannot be used at the moment; false without any. */
  readonly sharedAway: boolean;
  /** Epoch of the last purge that this process knows. */
  readonly lastPurge: string;
  /** Undefined without a mapping file. */
  readonly file: FileState | undefined;
}

/** Events that are logged. */
export type ResolverEvent =
  | { readonly kind: 'source-failed'; readonly fault: string; readonly reason: string }
  | { readonly kind: 'source-exception'; readonly cause: unknown }
  | { readonly kind: 'shared-away'; readonly cause: unknown }
  | { readonly kind: 'shared-back' }
  | { readonly kind: 'forgotten' }
  | FileEvent;
