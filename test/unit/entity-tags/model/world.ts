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
 * A small world in which every interleaving can be played: one member of a shop, a store of tags, clients that read
 * and write through proxies, and faults. Everything in it is plain data, so that a state can be copied and compared.
 * One tick of time is 1000 units of the protocol.
 */
export const tick = 1000;
/** Ticks: the lease covers sending (B), landing (S) and the margin (e). */
export const ticks = { lease: 3, sendBy: 1, landing: 1, coldStart: 3 };

export type Program =
  | 'reader' // GET, stamp before the shop is asked
  | 'other' // the same of another variant: another user, language or currency
  | 'checker' // the same as the reader, with `If-None-Match` for a copy that somebody has
  | 'timed-reader' // GET, stamped by time
  | 'head' // HEAD
  | 'writer' // PATCH with a tag that somebody holds
  | 'deleter' // DELETE with such a tag
  | 'child' // POST below the member
  | 'stranger' // the same without a token: it takes no lease
  | 'creator' // POST to the collection that makes the member anew
  | 'putter' // PUT with If-None-Match: * of the member
  | 'lister' // GET of the collection
  | 'timed-lister' // the same, stamped by time
  | 'batch' // PATCH of the collection with a tag of it
  | 'poster' // POST to the collection that may replace the member
  | 'idle'; // nothing

/** Rules of the proxy, outside the store's steps, that a test switches off. */
export type ProxyBreak =
  | 'send-by-from-the-answer' // the clock starts when the store has answered
  | 'identity-noticed-late' // a restored store goes by its old identity
  | 'no-look' // the clock is not looked at
  | 'look-then-write' // the look and the write are two steps
  | '5xx-is-refused'
  | 'tag-without-variant' // a 304 for every copy of the state, if the variant that is asked for is as it was recorded
  | 'no-mark' // an applied write of a stranger is not reported to the store
  | 'claim-retried' // no answer to a claim: the same token again, no end
  | 'delete-keeps-a-tag'
  | 'creation-takes-no-lease' // a PUT that creates claims as a write without a tag does
  | 'creation-takes-the-current-tag'
  | 'no-wait-for-replicas'
  | 'pass-without-replicas' // the same for a stranger alone
  | 'claim-without-deadline'
  | 'expiry-any-time'
  | 'eviction-forgets-the-change'
  | 'duration-measured-late'; // rule 7 with the time of the script minus a duration that was measured before

export interface Setting {
  readonly programs: readonly Program[];
  /** How often each fault may happen. */
  readonly faults: Partial<Record<Fault, number>>;
  readonly maxTicks: number;
  /** The shop says yes at once or later, and every answer arrives: fewer ways, longer stories. */
  readonly isCalm?: boolean;
  /** Of processes with the same program the first begins first: every other order is one of these, with other names. */
  readonly doTwinsBeginInOrder?: boolean;
  /** Of `batch: guarded`: the member belongs to a collection with a record. */
  readonly isGuarded?: boolean;
  readonly broken?: ProxyBreak | undefined;
  readonly ticks: typeof ticks;
  readonly steps: typeof protocol;
}

/**
 * `slow-claim`: a claim is still under way when its caller gives up and gives it back. `end-again`: the report of an outcome
 * fails, with its effect or without; the client has its answer, and the report is repeated.
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
  /** Of the collection. */
  readonly whole: TagRecord | null;
  /** Of the memory store alone. */
  readonly evictedChangeAt: number;
}

export interface Process {
  readonly program: Program;
  readonly at: number;
  readonly isDone: boolean;
  /** Talks to the old primary of a split brain. */
  readonly isolated: boolean;
  readonly stamp: ReadStamp | null;
  readonly startedAt: number;
  /** The copy that a checker asks about. */
  readonly copy: Held | null;
  /** Version of the shop's state that was read, or that the tag stands for. */
  readonly version: number;
  readonly tag: string | null;
  readonly token: string;
  readonly outcome: WriteOutcome | null;
  readonly took: number;
  /** Strangers whose writes were on their way when this one was granted: to it they are writers elsewhere. */
  readonly besides: readonly number[];
}

/** A tag that a client has, with the version that it believes the tag to stand for. */
export interface Held {
  readonly version: number;
  readonly tag: string;
  /** Of the copy that came with it; null: none did (HEAD, or the answer to a write). */
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
  /** Strangers that were let through, until what they wrote is marked in the store. */
  readonly passed: readonly number[];
  /** The versions that strangers made. */
  readonly made: ReadonlyArray<{ readonly version: number; readonly by: number }>;
  readonly held: readonly Held[];
  readonly drawn: number;
  readonly faults: Partial<Record<Fault, number>>;
  /** What went wrong: the invariant's violation. */
  readonly wrong: string | null;
}

export interface Action {
  readonly name: string;
  apply(world: World): World;
}

/** One call of a store and what the model answered: replayed against the real stores. `isOfWhole`: of the collection. */
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
    processes: programs.map((program) => ({
      program,
      at: 0,
      isDone: false,
      isolated: false,
      stamp: null,
      startedAt: 0,
      copy: null,
      version: 0,
      tag: null,
      token: '',
      outcome: null,
      took: 0,
      besides: [],
    })),
    pending: [],
    passed: [],
    made: [],
    held: [],
    drawn: 0,
    faults: {},
    wrong: null,
  };
}

/** Around a guarded collection. */
export const guardedCrowd: readonly Program[] = [
  ...(['reader', 'reader', 'timed-reader', 'other', 'lister', 'lister', 'timed-lister'] as const),
  ...(['writer', 'writer', 'child', 'stranger', 'deleter', 'putter'] as const),
  ...(['batch', 'batch', 'batch', 'poster', 'poster'] as const),
];
