import type { PathRules } from '../http/path-table.ts';
import type { Lifetimes } from './cache/cached-mapping.ts';
import type { SharedMapping } from './cache/shared-mapping.ts';
import type { PurgeLog } from './purge/purge-log.ts';
import type { AskUpstream } from './sources/ask-upstream.ts';
import type { ResolverEvent } from './url-resolver.ts';

/** Times are milliseconds, counts are counts; see docs/configuration.md for what they mean to a shop. */
export interface UrlResolverOptions {
  /** Canonical path, of the shop's resolver too. Default `/url-resolver`. */
  readonly path?: string;
  /** How paths are read (`request`): what the shop strips in front of `path` is no way past it. Default: nothing. */
  readonly paths?: PathRules;
  /** `{base_url}` of `links.self`, without a slash at its end; left out: scheme and Host of the request. */
  readonly publicUrl?: string | undefined;
  /** Default `['en', 'de']` and `en`. */
  readonly locales?: readonly string[];
  readonly defaultLocale?: string;
  /** Known values of `Store`, `_store` and, with `storeByHost`, of Host. Default none. */
  readonly stores?: readonly string[];
  /** The shop is sent the client's Host (`upstream.forwardHost`) and chooses its store by it. Default false. */
  readonly storeByHost?: boolean;
  /** At least one of the two; with both the file comes first. */
  readonly upstream?:
    | { readonly ask: AskUpstream; readonly timeoutMs?: number; readonly maxQuestions?: number }
    | undefined;
  readonly mappingFile?:
    | { readonly path: string; readonly lookEveryMs?: number; readonly settleMs?: number }
    | undefined;
  /** Defaults: 5 min, 30 s, 1 min, 24 h. */
  readonly lifetimes?: Partial<Lifetimes>;
  /** Longest wait for the source where there is a stale copy. Default 1000. */
  readonly staleWaitMs?: number;
  /** Entries of this process; the shared copies have four times as many slots. Default 100,000. */
  readonly maxEntries?: number;
  /** Left out: the process stands alone. */
  readonly shared?:
    | {
        readonly mappings: SharedMapping;
        readonly purgeLog: PurgeLog;
        /** Longest wait for the shared copies. Default 100. */
        readonly timeoutMs?: number;
      }
    | undefined;
  /** Learn from passing responses. Default false. */
  readonly learning?: boolean;
  readonly onEvent?: (event: ResolverEvent) => void;
  /** Milliseconds since 1970. Default `Date.now`. */
  readonly now?: () => number;
}

export const defaultLifetimes: Lifetimes = {
  ttlMs: 300_000,
  notFoundTtlMs: 30_000,
  staleWhileRevalidateMs: 60_000,
  staleIfErrorMs: 86_400_000,
};
