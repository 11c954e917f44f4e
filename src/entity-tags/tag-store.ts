import type { Eventually } from '../lib/eventually.ts';

/**
 * Port of the store of tags, fingerprints and leases. Each operation is atomic for all replicas that share the store;
 * docs/decisions/entity-tag-claims.md says why each exists. Rejects only with a fault (the store is away).
 */
export interface TagStore {
  /** Before the shop is asked (read-begin): what is known, and the stamp for `endRead`. One round trip. */
  lookUp(key: ResourceKey): Eventually<LookUp>;
  /**
   * A stamp for a read that began at `startedAt` of this process's monotonic clock (`performance.now()`), made from
   * what the store last said about its own clock: no round trip. Null when it said nothing recently: `lookUp` first.
   */
  readStampAt(key: ResourceKey, startedAt: number): ReadStamp | null;
  /**
   * Whether the store has just told its time: only then is `readStampAt` precise enough for a read right after a write.
   * Otherwise call `lookUp` before the shop is asked.
   */
  hasHeard(key: ResourceKey): boolean;
  /** After a whole 200: records it, and gives the tag that the answer may carry. */
  endRead(key: ResourceKey, read: ReadEnd): Eventually<ReadTag | null>;
  /** Before a write is sent: takes the lease, or says why not. Must not be repeated if it got no answer. */
  claim(key: ResourceKey, claim: Claim): Eventually<ClaimAnswer>;
  /** The outcome of a write; returns the tag that its response may carry. */
  end(key: ResourceKey, end: ClaimEnd): Eventually<string | null>;
  /** Begins the cold start of a new store, at a start or reconnect; resolves with the milliseconds that are left of it. */
  warmUp(): Promise<number>;
  /** Milliseconds that are left of the cold start, as the store last said; 0: none. */
  coldStartLeftMs(): number;
}

/**
 * Opaque key, made by `memberKey` or `collectionKey`. A client can neither read nor choose any part of it. With `batch:
 * guarded` the key of the collection ends with a dot, and the keys of its members begin with it.
 */
export type ResourceKey = string & { readonly resourceKey: true };

/** The guarded collection that a key belongs to, by its key; undefined: none. */
export function guardedCollectionOf(key: ResourceKey): ResourceKey | undefined {
  const dot = key.indexOf('.');
  return dot === -1 ? undefined : (key.slice(0, dot + 1) as ResourceKey);
}

/** Proof of when a read began. */
export interface ReadStamp {
  readonly epoch: string;
  /** Microseconds of the store's clock; never later than the read's real beginning. */
  readonly startedAt: number;
}

export interface LookUp {
  /** Null: what is read now gets no tag (cold start, or an indeterminate write may still take effect). */
  readonly stamp: ReadStamp | null;
  readonly tag: string | null;
  /** Why a write would be refused now; null: it would not. */
  readonly unsettled: 'cold-start' | 'indeterminate' | 'lease' | null;
}

export interface ReadEnd {
  readonly stamp: ReadStamp;
  readonly variant: string;
  /** Null (HEAD): nothing is recorded, the current tag is given. */
  readonly fingerprint: string | null;
  /** A fresh random tag, in case one is needed. */
  readonly newTag: string;
  /** The shop's own strong tag (opaque part), or null. */
  readonly shopTag: string | null;
  /** The shop's tag is of a collection: used only if no tag is known. */
  readonly isOfCollection: boolean;
  readonly isAnonymous?: boolean;
}

/** What a read's answer carries. */
export interface ReadTag {
  readonly tag: string;
  /** For a HEAD, which has no body: the fingerprint recorded for its variant. Null: none is recorded. */
  readonly fingerprint: string | null;
}

export interface Claim {
  readonly token: string;
  /** Tags of which one must be current, or `noTag`; null for a write that needs none (below a member). */
  readonly tags: readonly string[] | null;
  /** Waits for all other writes and excludes them, like a write with a tag: a POST that may change any member. */
  readonly isWhole?: boolean;
  /** The request has no verified token: its record expires early. */
  readonly isAnonymous?: boolean;
  /** A write without a token and without a tag. It waits for writes with a tag, and takes no lease. */
  readonly isOpen?: boolean;
}

export type ClaimAnswer =
  | { readonly kind: 'granted'; readonly shopTag: string | null }
  /** Another lease lasts for at most this long. */
  | { readonly kind: 'busy'; readonly remainingMs: number }
  /** No offered tag is current. */
  | { readonly kind: 'not-current' }
  /** A write with an unknown outcome may still take effect. */
  | { readonly kind: 'indeterminate'; readonly remainingMs: number }
  /** The store is new: leases may have been lost with the old one. */
  | { readonly kind: 'cold-start'; readonly remainingMs: number }
  /** Not all replicas of the store have the claim. */
  | { readonly kind: 'not-replicated' };

export interface ClaimEnd {
  readonly token: string;
  /** Whether the claim named tags, or was of the whole. */
  readonly tagged: boolean;
  readonly outcome: WriteOutcome;
  /** The tag that replaces the old one when `applied`; null: none (a deleted member). */
  readonly newTag: string | null;
  readonly shopTag: string | null;
  readonly isAnonymous?: boolean;
  /** The claim had `isOpen`, so there is no lease. */
  readonly isOpen?: boolean;
}

/**
 * `unsent`: no byte left. `refused`, `applied`: the shop said so. `invalidated`: the new state is not known, but the write is
 * over. `unknown`: the write may have taken effect, or may still do so.
 */
export type WriteOutcome = 'unsent' | 'refused' | 'applied' | 'invalidated' | 'unknown';
