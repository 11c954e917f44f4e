import type { CanonicalRequest } from '../http/canonical-request.ts';
import { namesTag, parseEntityTags, parseStrongTag } from '../http/entity-tag-list.ts';
import { type FieldEdits, type FieldList, fieldValue, fieldValues } from '../http/field-list.ts';
import { reject } from '../http/rejection.ts';
import { andThen, type Eventually } from '../lib/eventually.ts';
import type { ForwardOutcome, ResponseEdits, UpstreamHooks } from '../upstream/hooks.ts';
import { answerOctets, askStore, recordRead, type TrackedExchange } from './context.ts';
import { singleMemberId } from './json-api.ts';
import { randomTag, readIfMatch, readVary, stateOf, tagOfWrite, variantOf } from './keys.ts';
import { fingerprintOf } from './representation.ts';
import { memberKeyOf } from './resources.ts';
import type { ReadStamp } from './tag-store.ts';

interface Read extends TrackedExchange {
  readonly variant: string;
  /** Taken before the shop is asked. */
  readonly stamp: ReadStamp | null;
  /** The store was asked and did not answer: it is not asked again. */
  readonly isStoreAway: boolean;
  /** This process's monotonic clock, read before the shop is asked. */
  readonly startedAt: number;
  /** The state that its tag names if the store knows none. */
  readonly newTag: string;
}

/** GET or HEAD of a collection or a member: the hooks for the exchange with the shop. */
export function beginRead(exchange: TrackedExchange): Eventually<UpstreamHooks> {
  const { context, request, subject, key } = exchange;
  const { store } = context;
  const variant = variantOf(request, subject, 'read');
  const begin = (stamp: ReadStamp | null, isStoreAway: boolean, startedAt = context.monotonic()) =>
    hooksOf({ ...exchange, variant, stamp, isStoreAway, startedAt, newTag: randomTag() });
  if (store.hasHeard(key)) {
    const startedAt = context.monotonic();
    return begin(store.readStampAt(key, startedAt), false, startedAt);
  }
  // Without a recent answer, the store's clock is known too imprecisely to tell this read from a write just before it.
  return askStore(
    context,
    () => andThen(store.lookUp(key), ({ stamp }) => begin(stamp, false)),
    () => begin(null, true),
  );
}

function hooksOf(read: Read): UpstreamHooks {
  const { context, request, tracked, newTag } = read;
  return {
    requestFields: fieldsForShop(request),
    bufferLimit: context.trackedResponseBytes,
    // A long answer is sent with its tag before its end is known. The tag becomes current at the end if nothing has changed.
    streamedHeaderEdits: (status) =>
      status === 200 && tracked.role === 'member' ? { ETag: `"${tagOfWrite(newTag)}"` } : undefined,
    // An answer that is too long for a tag cannot meet `If-Match`.
    ...(!meetsIfMatch(read, undefined) && {
      withholds: (status) => status === 200,
      answerWithinMs: context.times.longestReadMs,
    }),
    onOutcome: (outcome) => endRead(read, outcome),
  };
}

/**
 * The shop never sees shopward's tags. A date beside a tag does not count (RFC 9110 sections 13.1.3 and 13.1.4). No range is
 * asked for, because only the whole body shows whether a condition is met (section 13.2.2). Most reads have no condition.
 */
function fieldsForShop({ fields }: CanonicalRequest): FieldEdits | undefined {
  const isMatch = fieldValue(fields, 'if-match') !== undefined;
  const isNoneMatch = fieldValue(fields, 'if-none-match') !== undefined;
  const isRange = fieldValue(fields, 'if-range') !== undefined;
  if (!isMatch && !isNoneMatch && !isRange) return undefined;
  return {
    ...{ 'if-match': null, 'if-none-match': null, 'if-range': null, range: null },
    ...(isMatch && { 'if-unmodified-since': null }),
    ...(isNoneMatch && { 'if-modified-since': null }),
  };
}

/** Whether `If-Match` lets a 200 with this tag through. */
function meetsIfMatch({ request, tracked }: Read, tag: string | undefined): boolean {
  const lines = fieldValues(request.fields, 'if-match');
  const { ifMatch } = tracked.resource;
  if (lines.length === 0 || parseEntityTags(lines, ifMatch) === '*') return true;
  const states = readIfMatch(lines, [], ifMatch);
  return tag !== undefined && typeof states !== 'string' && states.includes(stateOf(tag) ?? '');
}

/**
 * Caches must ask before they reuse a tracked answer, unless the shop says how long it is fresh: else they guess, and show a
 * state that a write has replaced.
 */
function revalidated(fields: FieldList): FieldEdits {
  const said = fieldValues(fields, 'cache-control').join(', ');
  if (/(?:^|,)\s*(?:no-cache(?!\s*=)|no-store|max-age|immutable)/i.test(said)) return {};
  if (fieldValue(fields, 'expires') !== undefined) return {};
  return { 'Cache-Control': said === '' ? 'no-cache' : `${said}, no-cache` };
}

/** Returns a value, not a promise, if neither body nor store needs one, as with the memory store. */
function endRead(read: Read, outcome: ForwardOutcome): Eventually<ResponseEdits> {
  const { context, tracked, isStoreAway } = read;
  if (outcome.kind !== 'answered') return {};
  const { status, fields, body } = outcome;
  if (status !== 200) return { fields: revalidated(fields) };
  if (body === null) {
    context.onEvent('untracked-too-large');
    const mayRecord = tracked.role === 'member' && !isStoreAway && !isFromCache(fields);
    if (mayRecord && meetsIfMatch(read, undefined))
      return andThen(record(read, fields, read.newTag, undefined), () => ({}));
  }
  const tag = body === null ? undefined : tagOf(read, fields, body);
  return andThen(tag, (given) => editsFor(read, fields, given));
}

/** RFC 9110 section 13.2.2: `If-Match` comes before `If-None-Match`. */
function editsFor(read: Read, answered: FieldList, tag: GivenTag | undefined): ResponseEdits {
  const { context, request, tracked } = read;
  if (!meetsIfMatch(read, tag?.value)) {
    context.onEvent('precondition-failed');
    return { rejection: reject('if-match-invalid', { reason: 'not-current' }) };
  }
  if (tag === undefined) return { fields: revalidated(answered) };
  const fields = { ETag: `"${tag.value}"`, ...revalidated(answered) };
  const lines = fieldValues(request.fields, 'if-none-match');
  const { ifMatch } = tracked.resource;
  if (tag.isValidator && namesTag(lines, tag.value, ifMatch)) {
    context.onEvent('not-modified');
    return { fields, notModified: true };
  }
  context.onEvent('tagged');
  return { fields };
}

interface GivenTag {
  readonly value: string;
  /**
   * Whether `If-None-Match` may name it, too, not only `If-Match`. False if the shop says `Vary: *`, and for HEAD: only the
   * body shows whether the state still has this tag.
   */
  readonly isValidator: boolean;
}

function tagOf(read: Read, fields: readonly string[], body: Buffer): Eventually<GivenTag | undefined> {
  const { context, request, tracked } = read;
  const isHead = request.method === 'HEAD';
  // Only the body shows whether the collection carries its own tag or a member's.
  if (read.isStoreAway || (isHead && tracked.role === 'collection')) return undefined;
  if (isFromCache(fields)) {
    context.onEvent('untracked-aged');
    return undefined;
  }
  if (isHead) return record(read, fields, null, undefined);
  return andThen(answerOctets(context, fields, body), (octets) =>
    andThen(fingerprintOf(octets, tracked.resource.ignore), (fingerprint) =>
      tagOfState(read, fields, octets, fingerprint),
    ),
  );
}

function tagOfState(
  read: Read,
  fields: readonly string[],
  octets: Buffer,
  fingerprint: string,
): Eventually<GivenTag | undefined> {
  const { context, tracked, isAnonymous } = read;
  if (tracked.role !== 'collection') return record(read, fields, fingerprint, undefined);
  const isGuarded = tracked.resource.batch === 'guarded';
  return andThen(isGuarded ? undefined : singleMemberId(octets), (memberId) => {
    if (!isAnonymous || memberId !== undefined) return record(read, fields, fingerprint, memberId);
    context.onEvent('untracked-stranger');
    return undefined;
  });
}

/** `memberId`: of the only member in a collection's answer. */
function record(
  read: Read,
  fields: readonly string[],
  fingerprint: string | null,
  memberId: string | undefined,
): Eventually<GivenTag | undefined> {
  const { request, tracked, subject, stamp, startedAt, newTag, isAnonymous } = read;
  // In a Cluster the member may have another slot, whose clock and epoch the stamp does not tell.
  const [key, begun] = memberId === undefined ? [read.key, stamp] : [memberKeyOf(tracked, memberId), null];
  const vary = readVary(fieldValues(fields, 'vary'));
  const ended = {
    variant: vary.followed.length === 0 ? read.variant : variantOf(request, subject, 'read', vary),
    fingerprint,
    newTag,
    shopTag: parseStrongTag(fieldValue(fields, 'etag')),
    isOfCollection: memberId !== undefined,
    isAnonymous,
  };
  return andThen(recordRead(read, key, begun, startedAt, ended, vary), (value) =>
    value === null ? undefined : { value, isValidator: request.method !== 'HEAD' && !vary.isAny },
  );
}

/** RFC 9111 section 5.1: it comes from a cache between shopward and the shop, which writes do not invalidate. */
function isFromCache(fields: readonly string[]): boolean {
  return fieldValues(fields, 'age').some((age) => age.trim() !== '0');
}
