import type { CanonicalRequest } from '../http/canonical-request.ts';
import { decodeBody } from '../http/content-coding.ts';
import { andThen, type Eventually } from '../lib/eventually.ts';
import { RedisUnavailable } from '../redis/faults.ts';
import type { AnonymousRecords } from './anonymous-records.ts';
import { entityTagOf, type Identity, isAnonymous, subjectOf, type Vary } from './keys.ts';
import { collectionKeyOf, type TrackedRequest, type TrackedResourceOptions } from './resources.ts';
import type { ReadEnd, ReadStamp, ResourceKey, TagStore } from './tag-store.ts';
import type { EntityTagTimes } from './times.ts';

/** What happened to a tracked request; stable words for metrics and the console. */
export type EntityTagEvent =
  | 'tagged' // a read's answer carries a tag
  | 'not-modified'
  | 'untagged' // a read that gets no tag (a change in between, a cold start, an unknown write)
  | 'untracked-too-large' // passed through: too large, endless or stalling
  | 'untracked-aged' // `Age` above 0: the answer of a cache, which writes do not reach
  | 'untracked-stranger' // a collection that was read without a verified token
  | 'untracked-anonymous' // a client without a verified token may make no more records
  | 'precondition-missing'
  | 'precondition-failed'
  | 'lenient-spelling'
  | 'collection-write' // refused: it would change members whose tags the client has not named
  | 'claimed'
  | 'lease-busy' // waited in vain for another write
  | 'quiet' // refused: a write with an unknown outcome may still take effect
  | 'hold' // refused: the store is new
  | 'applied'
  | 'refused'
  | 'unsent'
  | 'spoilt'
  | 'unknown-outcome'
  | 'outcome-unstored' // the shop has answered, but the store did not take the outcome
  | 'store-unavailable';

/** What reads and writes share: the store, the clocks, the limits. */
export interface EntityTagContext {
  readonly store: TagStore;
  /** Whether another process on this store forwards writes of this resource unchecked. Default: no. */
  readonly isUntracked?: (resource: TrackedResourceOptions) => boolean;
  readonly times: EntityTagTimes;
  readonly anonymousRecords: AnonymousRecords;
  /** Milliseconds that a second writer waits for the first one. */
  readonly waitMs: number;
  /** Bytes of the longest response that is tracked (`limits.trackedResponse`). */
  readonly trackedResponseBytes: number;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Milliseconds; `performance.now`, the clock of `TagStore.readStampAt`. */
  readonly monotonic: () => number;
  readonly onEvent: (event: EntityTagEvent) => void;
}

/** A request to a tracked resource, and its sender. */
export interface TrackedExchange {
  readonly context: EntityTagContext;
  readonly request: CanonicalRequest;
  readonly tracked: TrackedRequest;
  readonly subject: string;
  readonly isAnonymous: boolean;
  /** The member's record, else the subject's record of the collection. */
  readonly key: ResourceKey;
}

export function toTrackedExchange(
  context: EntityTagContext,
  request: CanonicalRequest,
  tracked: TrackedRequest,
  identity: Identity,
): TrackedExchange {
  const subject = subjectOf(request, identity);
  const key = tracked.member ?? collectionKeyOf(tracked, subject);
  const isRefused = context.isUntracked?.(tracked.resource) === true;
  const usable = isRefused ? { ...context, store: refusingStore } : context;
  return { context: usable, request, tracked, subject, isAnonymous: isAnonymous(identity), key };
}

/** For a resource that another process does not track: reads get no tag, writes get 503. */
const refusingStore: TagStore = {
  lookUp: refuse,
  readStampAt: () => null,
  hasHeard: () => false,
  endRead: refuse,
  claim: refuse,
  end: refuse,
  warmUp: async () => 0,
  coldStartLeftMs: () => 0,
};

function refuse(): never {
  throw new RedisUnavailable('settings');
}

/** A compressed response may decode to this many times `trackedResponseBytes`. */
const maxExpansion = 8;

/** The decoded octets of a response of any media type; the octets as received if the coding is unknown. */
export function answerOctets(
  { trackedResponseBytes }: EntityTagContext,
  fields: readonly string[],
  body: Buffer,
): Eventually<Buffer> {
  return andThen(decodeBody(body, fields, trackedResponseBytes * maxExpansion), (octets) => octets ?? body);
}

/** The store's reply, synchronously if it is known already; `otherwise` if the store is away. */
export function askStore<T>(
  { onEvent }: EntityTagContext,
  ask: () => Eventually<T>,
  otherwise: () => T,
): Eventually<T> {
  const withoutStore = () => {
    onEvent('store-unavailable');
    return otherwise();
  };
  try {
    const answer = ask();
    return answer instanceof Promise ? answer.catch(withoutStore) : answer;
  } catch {
    return withoutStore();
  }
}

/** Ends a read that began at `startedAt`, perhaps with a stamp. Returns the tag of the response; null: it gets none. */
export function recordRead(
  { context, request }: Pick<TrackedExchange, 'context' | 'request'>,
  key: ResourceKey,
  earlier: ReadStamp | null,
  startedAt: number,
  read: Omit<ReadEnd, 'stamp'>,
  vary?: Vary,
): Eventually<string | null> {
  const { store, anonymousRecords } = context;
  const isNew = read.isAnonymous === true && read.fingerprint !== null;
  const taken = isNew ? anonymousRecords.take(request.clientAddress) : undefined;
  const mayRecord = !isNew || taken !== undefined;
  // Without a fingerprint the store tells what it has recorded, and records nothing.
  const asked = mayRecord ? read : { ...read, fingerprint: null };
  const endWith = (stamp: ReadStamp | null) =>
    andThen(stamp && store.endRead(key, { ...asked, stamp }), (given) => {
      if (given?.tag !== read.newTag) taken?.giveBack();
      const isKnown = mayRecord || (given !== null && given.fingerprint === read.fingerprint);
      if (given === null || !isKnown) context.onEvent(mayRecord ? 'untagged' : 'untracked-anonymous');
      if (given === null || !isKnown || stamp === null) return null;
      const shown = { epoch: stamp.epoch, variant: read.variant, fingerprint: given.fingerprint ?? '' };
      return entityTagOf(given.tag, shown, request, vary);
    });
  const known = earlier ?? store.readStampAt(key, startedAt);
  // If the store has not told its time recently, ask it now: a lower bound for the beginning follows from its answer.
  const end = () =>
    known === null
      ? andThen(store.lookUp(key), () => endWith(store.readStampAt(key, startedAt)))
      : endWith(known);
  return askStore(context, end, () => {
    taken?.giveBack();
    return null;
  });
}
