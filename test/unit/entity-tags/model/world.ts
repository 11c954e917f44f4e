import type * as protocol from '../../../../src/entity-tags/protocol.ts';
import type { TagRecord } from '../../../../src/entity-tags/protocol.ts';
import type {
  ClaimAnswer,
  LookUp,
  ReadStamp,
  ReadTag,
  ResourceKey,
  WriteOutcome,
} from '../../../../src/entity-tags/tag-store.ts';

/**
 * A small world in which every interleaving can be explored: one member of a shop, a store of tags, clients that read
 * and write through proxies, and faults. All of it is plain data, so that a state can be copied and compared.
 * One tick of time is 1000 units of the protocol.
 */
export const tick = 1000;
/** In ticks. The lease covers sending (B), landing (S) and the margin (e). */
export const ticks = { lease: 3, sendBy: 1, landing: 1, coldStart: 3 };

export type Program =
  | 'reader' // GET, stamp before the shop is asked
  | 'other' // a reader of another variant: another user, language or currency
  | 'checker' // a reader with `If-None-Match` for a copy that some client has
  | 'timed-reader' // GET, stamped by the clock of the proxy
  | 'head' // HEAD
  | 'writer' // PATCH with a tag that some client has
  | 'deleter' // DELETE with such a tag
  | 'child' // POST below the member
  | 'anonymous' // POST below the member without a token: it takes no lease
  | 'creator' // POST to the collection that makes the member anew
  | 'putter' // PUT with If-None-Match: * of the member
  | 'lister' // GET of the collection
  | 'timed-lister' // GET of the collection, stamped by the clock of the proxy
  | 'batch' // PATCH of the collection with a tag of the collection
  | 'poster' // POST to the collection that may replace the member
  | 'idle'; // nothing

/** Rules of the proxy, outside the store's steps, that a test switches off. */
export type ProxyBreak =
  | 'send-by-from-the-answer' // the time to send counts from the answer of the store
  | 'identity-noticed-late' // a restored store keeps its old identity
  | 'no-look' // the clock is not read before the write is sent
  | 'look-then-write' // reading the clock and sending the write are two steps
  | '5xx-is-refused'
  | 'tag-without-variant' // a 304 for every copy of the state, if the fingerprint of the requested variant has not changed
  | 'no-mark' // an applied write of an anonymous client is not reported to the store
  | 'delete-keeps-a-tag'
  | 'creation-takes-no-lease' // a PUT that creates claims like a write without a tag
  | 'creation-takes-the-current-tag'
  | 'no-wait-for-replicas'
  | 'pass-without-replicas' // as `no-wait-for-replicas`, only for anonymous clients
  | 'claim-without-deadline'
  | 'expiry-any-time'
  | 'eviction-forgets-the-change'
  | 'duration-measured-late'; // the start of a read is computed from a duration that was measured before the script runs

export interface Setting {
  readonly programs: readonly Program[];
  /** How often each fault may happen. */
  readonly faults: Partial<Record<Fault, number>>;
  readonly maxTicks: number;
  /** The shop applies every write and every answer arrives: fewer branches, so longer walks. */
  readonly isCalm?: boolean;
  /** Processes with the same program start in order: any other order is the same one with the processes swapped. */
  readonly doTwinsBeginInOrder?: boolean;
  /** As with `batch: guarded`: the collection of the member has a record too. */
  readonly isGuarded?: boolean;
  readonly broken?: ProxyBreak | undefined;
  readonly ticks: typeof ticks;
  readonly steps: typeof protocol;
}

/**
 * `slow-claim`: a claim is still under way when its caller gives up and releases it. `end-again`: the report of an outcome
 * fails, with its effect or without. The client has its answer, and the report is repeated.
 */
export type Fault =
  | 'slow-claim'
  | 'crash'
  | 'wipe'
  | 'restart'
  | 'restore'
  | 'failover'
  | 'expire'
  | 'evict'
  | 'end-lost'
  | 'end-again';

export interface StoreState {
  readonly id: number;
  readonly marker: { readonly id: number; readonly since: number } | null;
  readonly record: TagRecord | null;
  /** The record of the collection. */
  readonly whole: TagRecord | null;
  /** Used by the memory store only. */
  readonly evictedChangeAt: number;
}

export interface Process {
  readonly program: Program;
  readonly at: number;
  readonly isDone: boolean;
  /** After a failover: whether it still uses the old primary. */
  readonly isolated: boolean;
  readonly stamp: ReadStamp | null;
  readonly startedAt: number;
  /** The copy that a checker asks about. */
  readonly copy: Copy | null;
  /** The version at the shop that was read, or that belongs to the tag. */
  readonly version: number;
  readonly tag: string | null;
  readonly token: string;
  readonly outcome: WriteOutcome | null;
  readonly took: number;
  /** Anonymous clients that had been let through when this write was granted. Their changes are no lost update for it. */
  readonly besides: readonly number[];
}

/** A tag that a client has, and the version that the client expects behind it. */
export interface Copy {
  readonly version: number;
  readonly tag: string;
  /** The variant of the copy that came with the tag; null if none came (HEAD, or the answer to a write). */
  readonly variant: string | null;
}

export interface World {
  readonly now: number;
  /** `acknowledged`: the last version whose writer has its answer. */
  readonly shop: { readonly version: number; readonly exists: boolean; readonly acknowledged: number };
  readonly store: StoreState;
  readonly old: StoreState | null;
  readonly replica: StoreState;
  readonly disk: StoreState;
  readonly processes: readonly Process[];
  /** Writes that the shop has and may act on; `basedOn`: the version that a write with a tag was made for. */
  readonly pending: ReadonlyArray<{
    readonly by: number;
    readonly landBy: number;
    readonly basedOn: number | null;
    readonly besides: readonly number[];
  }>;
  /** Anonymous clients that were let through and whose change is not yet marked in the store. */
  readonly passed: readonly number[];
  /** The versions that anonymous clients made. */
  readonly made: ReadonlyArray<{ readonly version: number; readonly by: number }>;
  readonly copies: readonly Copy[];
  readonly drawn: number;
  readonly faults: Partial<Record<Fault, number>>;
  /** The violated invariant. */
  readonly wrong: string | null;
}

export interface Action {
  readonly name: string;
  apply(world: World): World;
}

/** One call of a store and the answer of the model, for the replay on the real stores. `isOfWhole`: of the collection. */
export type Call = { readonly isOfWhole?: boolean } & (
  | { readonly kind: 'lookUp'; readonly answer: LookUp }
  | {
      readonly kind: 'endRead';
      readonly read: Parameters<typeof protocol.endRead>[1];
      readonly answer: ReadTag | null;
    }
  | {
      readonly kind: 'claim';
      readonly claim: Parameters<typeof protocol.claim>[1];
      readonly answer: ClaimAnswer;
    }
  | { readonly kind: 'end'; readonly end: Parameters<typeof protocol.end>[1]; readonly answer: string | null }
  | { readonly kind: 'time'; readonly now: number }
  | { readonly kind: 'wipe' }
  | { readonly kind: 'save' }
  | { readonly kind: 'restore' }
  | { readonly kind: 'id'; readonly id: number }
);

export const theKey = 'the-one' as ResourceKey;

/** A process before its first step. */
export const blank = {
  ...{ at: 0, isDone: false, stamp: null, startedAt: 0, copy: null, version: 0, tag: null },
  ...{ token: '', outcome: null, took: 0, besides: [] },
};

export function createWorld({ programs }: Setting): World {
  const now = 100 * tick;
  const store: StoreState = {
    id: 1,
    marker: { id: 1, since: 0 },
    record: null,
    whole: null,
    evictedChangeAt: 0,
  };
  return {
    now,
    shop: { version: 1, exists: true, acknowledged: 1 },
    store,
    old: null,
    replica: store,
    disk: store,
    processes: programs.map((program) => ({ program, isolated: false, ...blank })),
    pending: [],
    passed: [],
    made: [],
    copies: [],
    drawn: 0,
    faults: {},
    wrong: null,
  };
}

/** The programs for walks with a guarded collection. */
export const guardedCrowd: readonly Program[] = [
  ...(['reader', 'reader', 'timed-reader', 'other', 'lister', 'lister', 'timed-lister'] as const),
  ...(['writer', 'writer', 'child', 'anonymous', 'deleter', 'putter'] as const),
  ...(['batch', 'batch', 'batch', 'poster', 'poster'] as const),
];
