import {
  changed,
  createRecord,
  isIndeterminate,
  isLeased,
  type Lease,
  markIndeterminate,
  noTag,
  saysNothing,
  type TagRecord,
  taint,
  without,
} from './tag-record.ts';
import type { Claim, ClaimAnswer, ClaimEnd, LookUp, ReadEnd, ReadStamp, ReadTag } from './tag-store.ts';

/**
 * The claim protocol as pure steps: the stored record and the store's clock go in, the record to store and the answer
 * come out. The memory store runs these; `lua.ts` is the same for Redis. docs/decisions/entity-tag-claims.md explains
 * every line. All times are microseconds of the store's clock.
 */
export interface ProtocolTimes {
  readonly lease: number;
  /** How long a new store gives out no tags. */
  readonly coldStart: number;
  /** A read that took longer is not recorded. */
  readonly longestRead: number;
}

/** The state of a store at one moment, after everything that has expired by then. */
export interface Opened {
  readonly now: number;
  readonly epoch: string;
  /** The end of the cold start; a read that began earlier is not recorded. */
  readonly coldStartUntil: number;
  /** The latest change of all evicted records: an absent record may have been changed then. 0: none was evicted. */
  readonly evictedChangeAt: number;
  readonly record: TagRecord | null;
}

/** When a store is opened, and what it is. */
interface Moment {
  readonly now: number;
  readonly epoch: string;
  readonly since: number;
  readonly evictedChangeAt?: number;
}

export interface Step<T> {
  readonly record: TagRecord | null;
  readonly answer: T;
}

const maxVariants = 32;
const maxLeases = 64;
/** How long one claim of a waiting writer keeps others from being admitted before it: several times its poll interval. */
const longestWanted = 500_000;
const wantedPerLease = 30;
/** The share of a lease for which anonymous writes wait for a verified user: enough for a read and a write. */
const prioritiesPerLease = 3;

/** The first step of every operation: records of another epoch are absent, and what has expired takes effect. */
export function open(
  stored: TagRecord | null,
  { now, epoch, since, evictedChangeAt = 0 }: Moment,
  times: ProtocolTimes,
): Opened {
  const record = stored !== null && stored.epoch === epoch ? expire(stored, now) : null;
  return { now, epoch, coldStartUntil: since + times.coldStart, evictedChangeAt, record };
}

function expire(stored: TagRecord, now: number): TagRecord {
  let record = stored;
  for (const lease of stored.leases) {
    if (lease.until > now) continue;
    record = { ...changed(record, lease.until), leases: without(record.leases, lease.token) };
  }
  if (record.indeterminateUntil !== 0 && record.indeterminateUntil <= now) {
    const { indeterminateUntil } = record;
    record = { ...changed(record, indeterminateUntil), indeterminateUntil: 0, indeterminateTagged: false };
  }
  return record;
}

export function lookUp(opened: Opened, variant: string | null): LookUp {
  const { now, epoch, record } = opened;
  const unsettled = whyUnsettled(opened);
  const stamp = unsettled === 'cold-start' || isIndeterminate(record) ? null : { epoch, startedAt: now };
  const known = variant === null ? undefined : record?.fingerprints[variant];
  const recorded =
    known === undefined || unsettled !== null
      ? null
      : { fingerprint: known.value, ageMs: (now - known.at) / 1000, fields: known.fields };
  return { stamp, tag: record?.tag ?? null, unsettled, recorded };
}

export function endRead(opened: Opened, read: ReadEnd, times: ProtocolTimes): Step<ReadTag | null> {
  const { now, epoch, evictedChangeAt, record } = opened;
  if (isColdStart(opened) || isIndeterminate(record)) return { record, answer: null };
  if (!isUnchangedSince(opened, read.stamp, times)) {
    return { record: read.isAnonymous === true ? record : givePriority(opened, times), answer: null };
  }
  const known = record?.fingerprints[read.variant];
  if (read.fingerprint === null || isLeased(record)) {
    const tag = record?.tag ?? null;
    return {
      record,
      answer: tag === null ? null : { tag, fingerprint: read.fingerprint ?? known?.value ?? null },
    };
  }
  const fingerprint = { value: read.fingerprint, at: read.stamp.startedAt, fields: read.fields ?? '' };
  const before = record ?? createRecord(epoch, evictedChangeAt);
  const only = { [read.variant]: fingerprint };
  const first = { ...before, tag: read.newTag, shopTag: read.shopTag, fingerprints: only };
  const answer = { tag: read.newTag, fingerprint: read.fingerprint };
  if (before.tag === null) return { record: first, answer };
  if (known !== undefined && known.value !== read.fingerprint) {
    return { record: { ...first, changedAt: now }, answer };
  }
  const isFull = known === undefined && Object.keys(before.fingerprints).length >= maxVariants;
  const fingerprints = isFull ? only : { ...before.fingerprints, ...only };
  const shopTag = read.isOfCollection ? (before.shopTag ?? read.shopTag) : read.shopTag;
  return {
    record: { ...before, shopTag, fingerprints },
    answer: { tag: before.tag, fingerprint: read.fingerprint },
  };
}

function isUnchangedSince(opened: Opened, { epoch, startedAt }: ReadStamp, times: ProtocolTimes): boolean {
  const { now, coldStartUntil, evictedChangeAt, record } = opened;
  const lastedFor = now - startedAt;
  // Below 0: the clock was set back meanwhile.
  if (epoch !== opened.epoch || lastedFor > times.longestRead || lastedFor < 0) return false;
  return startedAt > (record?.changedAt ?? evictedChangeAt) && startedAt > coldStartUntil;
}

export function claim(opened: Opened, wanted: Claim, times: ProtocolTimes): Step<ClaimAnswer> {
  const { token, tags } = wanted;
  const { now, epoch, coldStartUntil, evictedChangeAt, record } = opened;
  const refuse = (answer: ClaimAnswer): Step<ClaimAnswer> => ({ record, answer });
  if (isColdStart(opened)) return refuse({ kind: 'cold-start', remainingMs: (coldStartUntil - now) / 1000 });
  const before = record ?? createRecord(epoch, evictedChangeAt);
  const { leases, indeterminateUntil } = before;
  const indeterminate: ClaimAnswer = {
    kind: 'indeterminate',
    remainingMs: (indeterminateUntil - now) / 1000,
  };
  if (tags !== null && !tags.includes(record?.tag ?? noTag)) {
    if (isIndeterminate(record)) return refuse(indeterminate);
    const after = wanted.isAnonymous === true ? record : givePriority(opened, times);
    return { record: after, answer: { kind: 'not-current' } };
  }
  if (wanted.isOpen === true) return { record, answer: mayPass(before, now) };
  if (tags === null ? !isOpenToOthers(before, now) : leases.length > 0) {
    const busyUntil = Math.max(before.wantedUntil, ...leases.map(({ until }) => until));
    const answer: ClaimAnswer = { kind: 'busy', remainingMs: (busyUntil - now) / 1000 };
    if (tags === null || leases.some(({ tagged }) => tagged)) return refuse(answer);
    const wantedUntil = now + Math.min(longestWanted, Math.floor(times.lease / wantedPerLease));
    return { record: { ...before, wantedUntil }, answer };
  }
  if (isIndeterminate(record) && (tags !== null || record?.indeterminateTagged === true))
    return refuse(indeterminate);
  const tainted = isIndeterminate(record) || leases.length > 0;
  const lease: Lease = { token, until: now + times.lease, tagged: tags !== null, tainted };
  const wantedUntil = tags === null ? before.wantedUntil : 0;
  const priorityUntil = tags === null ? before.priorityUntil : null;
  return {
    record: { ...before, leases: [...taint(leases), lease], wantedUntil, priorityUntil },
    answer: { kind: 'granted', shopTag: before.shopTag },
  };
}

/** Whether a write without a lease may be sent; the permission is valid for `sendBy`. */
function mayPass(
  { leases, wantedUntil, priorityUntil, indeterminateUntil, indeterminateTagged }: TagRecord,
  now: number,
): ClaimAnswer {
  const tagged = leases.filter((lease) => lease.tagged).map(({ until }) => until);
  const busyUntil = Math.max(wantedUntil, priorityUntil ?? 0, ...tagged);
  if (busyUntil > now) return { kind: 'busy', remainingMs: (busyUntil - now) / 1000 };
  if (indeterminateTagged) return { kind: 'indeterminate', remainingMs: (indeterminateUntil - now) / 1000 };
  return { kind: 'granted', shopTag: null };
}

/** A priority is followed by a pause of the same length, so that neither side shuts the other out. */
function givePriority({ now, record }: Opened, { lease }: ProtocolTimes): TagRecord | null {
  const lasts = Math.floor(lease / prioritiesPerLease);
  if (record === null || !record.anonymousWrote) return record;
  if (record.priorityUntil !== null && now < record.priorityUntil + lasts) return record;
  return { ...record, priorityUntil: now + lasts };
}

export function end(opened: Opened, write: ClaimEnd, times: ProtocolTimes): Step<string | null> {
  const { now, epoch, evictedChangeAt, record } = opened;
  const { outcome } = write;
  const lease = record?.leases.find(({ token }) => token === write.token);
  const changesNothing = outcome === 'unsent' || outcome === 'refused';
  if (record === null || lease === undefined) {
    if (changesNothing) return { record, answer: null };
    const late = changed(record ?? createRecord(epoch, evictedChangeAt), now);
    const anonymousWrote = late.anonymousWrote || write.isOpen === true;
    const after = { ...late, leases: taint(late.leases), anonymousWrote };
    const isUnknown = outcome === 'unknown';
    return {
      record: isUnknown ? markIndeterminate(after, now + times.lease, write.tagged) : after,
      answer: null,
    };
  }
  const leases = without(record.leases, lease.token);
  if (changesNothing) {
    const before = { ...record, leases };
    return { record: saysNothing(before, evictedChangeAt) ? null : before, answer: null };
  }
  const after: TagRecord = { ...changed(record, now), leases };
  if (outcome === 'unknown') {
    return { record: markIndeterminate(after, lease.until, lease.tagged), answer: null };
  }
  if (outcome === 'invalidated' || lease.tainted || write.newTag === null)
    return { record: after, answer: null };
  return { record: { ...after, tag: write.newTag, shopTag: write.shopTag }, answer: write.newTag };
}

/** Writes without a tag do not wait for each other, but for one with a tag that is in progress or waits. */
function isOpenToOthers({ leases, wantedUntil }: TagRecord, now: number): boolean {
  return wantedUntil <= now && leases.length < maxLeases && leases.every(({ tagged }) => !tagged);
}

function isColdStart({ now, coldStartUntil }: Opened): boolean {
  return now < coldStartUntil;
}

function whyUnsettled(opened: Opened): LookUp['unsettled'] {
  if (isColdStart(opened)) return 'cold-start';
  if (isIndeterminate(opened.record)) return 'indeterminate';
  return isLeased(opened.record) ? 'lease' : null;
}
