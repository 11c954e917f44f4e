/**
 * The claim protocol as pure steps: the stored record and the store's clock go in, the record to store and the answer
 * come out. The memory store runs these; `lua.ts` is the same for Redis. docs/decisions/entity-tag-claims.md explains
 * them. All times are microseconds of the store's clock.
 */
import type { Claim, ClaimAnswer, ClaimEnd, LookUp, ReadEnd, ReadStamp, ReadTag } from './tag-store.ts';

/** The record of one resource in the store. */
export interface TagRecord {
  readonly epoch: string;
  readonly tag: string | null;
  readonly shopTag: string | null;
  /** By variant. */
  readonly fingerprints: Readonly<Record<string, string>>;
  /** Either one with a tag, or up to 64 without. */
  readonly leases: readonly Lease[];
  /** A write with the current tag waits for the leases to end: until this time no new lease is granted before its own. */
  readonly wantedUntil: number;
  /** An anonymous write has changed something. */
  readonly anonymousWrote: boolean;
  /** Until then anonymous writes wait, because one made a verified user's request fail. `null`: none did, or it was used. */
  readonly priorityUntil: number | null;
  /** A write with an unknown outcome may take effect until then; 0: none. */
  readonly indeterminateUntil: number;
  /** A write with a tag is among those with an unknown outcome. */
  readonly indeterminateTagged: boolean;
  /** Time of the last possible change; a read that began before is not recorded. */
  readonly changedAt: number;
  /** Of a guarded collection: the same for writes of the whole. Older states of its members are void. */
  readonly replacedAt: number;
}

/** Named by a write that creates a member: it is current while the member has no tag. No client can send it. */
export const noTag = '';

interface Lease {
  readonly token: string;
  readonly until: number;
  readonly tagged: boolean;
  /** Others may write at the same time, so its success does not tell the state: it leaves no tag. */
  readonly tainted: boolean;
}

/** Whether a record says no more than an absent one. It is deleted then, so that ids that do not exist cannot fill the store. */
function saysNothing(record: TagRecord, evictedChangeAt: number): boolean {
  const { tag, changedAt, replacedAt, indeterminateUntil, leases } = record;
  const isOld = changedAt <= evictedChangeAt && replacedAt <= evictedChangeAt;
  return tag === null && isOld && indeterminateUntil === 0 && leases.length === 0;
}

/** Exported for its tests. */
export function without(leases: readonly Lease[], gone: string): readonly Lease[] {
  return leases.filter(({ token }) => token !== gone);
}

/** Exported for its tests. */
export function taint(leases: readonly Lease[]): readonly Lease[] {
  return leases.map((lease) => ({ ...lease, tainted: true }));
}

/** The state may have changed at `at`: the tag is removed, and no read that began before may set one. Exported for its tests. */
export function changed(record: TagRecord, at: number): TagRecord {
  return { ...record, tag: null, shopTag: null, fingerprints: {}, changedAt: Math.max(record.changedAt, at) };
}

/** As `changed`. `isWhole`: `replacedAt` is one microsecond later, so that members changed at `at` count as older. */
function replaced(record: TagRecord, at: number, isWhole: boolean): TagRecord {
  const after = changed(record, at);
  return isWhole ? { ...after, replacedAt: Math.max(after.replacedAt, at + 1) } : after;
}

/** Exported for its tests. */
export function markIndeterminate(record: TagRecord, until: number, tagged: boolean): TagRecord {
  return {
    ...record,
    indeterminateUntil: Math.max(record.indeterminateUntil, until),
    indeterminateTagged: record.indeterminateTagged || tagged,
  };
}

/** `evictedChangeAt`: the latest change of an evicted record, which may have been this one. Exported for its tests. */
export function createRecord(epoch: string, evictedChangeAt: number): TagRecord {
  return {
    ...{ epoch, tag: null, shopTag: null, fingerprints: {}, leases: [], wantedUntil: 0 },
    ...{ anonymousWrote: false, priorityUntil: null, indeterminateUntil: 0, indeterminateTagged: false },
    changedAt: evictedChangeAt,
    replacedAt: evictedChangeAt,
  };
}

/** Exported for its tests. */
export function isLeased(record: TagRecord | null): boolean {
  return record !== null && record.leases.length > 0;
}

/** Exported for its tests. */
export function isIndeterminate(record: TagRecord | null): boolean {
  return record !== null && record.indeterminateUntil !== 0;
}

export interface ProtocolTimes {
  readonly lease: number;
  /** How long a new store gives out no tags. */
  readonly coldStart: number;
  /** A read that took longer is not recorded. */
  readonly longestRead: number;
}

/** The state of a store at one moment, after everything that has expired took effect. */
export interface Opened {
  readonly now: number;
  readonly epoch: string;
  /** The end of the cold start; a read that began earlier is not recorded. */
  readonly coldStartUntil: number;
  /** The latest change of all evicted records: an absent record may have been changed then. 0: none was evicted. */
  readonly evictedChangeAt: number;
  readonly record: TagRecord | null;
}

/** The time at which a store is opened, and the identity of its data. */
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
    const leases = without(record.leases, lease.token);
    record = { ...replaced(record, lease.until, lease.tagged), leases };
  }
  if (record.indeterminateUntil !== 0 && record.indeterminateUntil <= now) {
    const after = replaced(record, record.indeterminateUntil, record.indeterminateTagged);
    record = { ...after, indeterminateUntil: 0, indeterminateTagged: false };
  }
  return record;
}

export function lookUp(opened: Opened): LookUp {
  const { now, epoch, record } = opened;
  const unsettled = whyUnsettled(opened);
  const stamp = unsettled === 'cold-start' || isIndeterminate(record) ? null : { epoch, startedAt: now };
  return { stamp, tag: record?.tag ?? null, unsettled };
}

export function endRead(opened: Opened, read: ReadEnd, times: ProtocolTimes): Step<ReadTag | null> {
  const { now, epoch, evictedChangeAt, record } = opened;
  if (isColdStart(opened) || isIndeterminate(record)) return { record, answer: null };
  if (!isUnchangedSince(opened, read.stamp, times)) {
    return { record: read.isAnonymous === true ? record : givePriority(opened, times), answer: null };
  }
  const known = record?.fingerprints[read.variant];
  const tag = record?.tag ?? null;
  // The first state is recorded even during a lease: else writes that the shop refuses could keep a member without a tag.
  if (read.fingerprint === null || (isLeased(record) && tag !== null)) {
    return { record, answer: tag === null ? null : { tag, fingerprint: read.fingerprint ?? known ?? null } };
  }
  const before = record ?? createRecord(epoch, evictedChangeAt);
  const { fingerprint } = read;
  const only = { [read.variant]: fingerprint };
  if (before.tag === null || (known !== undefined && known !== fingerprint)) {
    const changedAt = before.tag === null ? before.changedAt : now;
    const first = { ...before, tag: read.newTag, shopTag: read.shopTag, fingerprints: only, changedAt };
    return { record: first, answer: { tag: read.newTag, fingerprint } };
  }
  const answer = { tag: before.tag, fingerprint };
  const shopTag = read.isOfCollection ? (before.shopTag ?? read.shopTag) : read.shopTag;
  // Most reads find nothing changed.
  if (known !== undefined && shopTag === before.shopTag) return { record, answer };
  const isFull = known === undefined && Object.keys(before.fingerprints).length >= maxVariants;
  const fingerprints = isFull ? only : { ...before.fingerprints, ...only };
  return { record: { ...before, shopTag, fingerprints }, answer };
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
  const tagged = tags !== null || wanted.isWhole === true;
  const { now, epoch, coldStartUntil, evictedChangeAt, record } = opened;
  const refuse = (answer: ClaimAnswer): Step<ClaimAnswer> => ({ record, answer });
  if (isColdStart(opened)) return refuse({ kind: 'cold-start', remainingMs: (coldStartUntil - now) / 1000 });
  const before = record ?? createRecord(epoch, evictedChangeAt);
  const { leases, indeterminateUntil } = before;
  const indeterminate = { kind: 'indeterminate', remainingMs: (indeterminateUntil - now) / 1000 } as const;
  if (tags !== null && !tags.includes(record?.tag ?? noTag)) {
    if (isIndeterminate(record)) return refuse(indeterminate);
    const after = wanted.isAnonymous === true ? record : givePriority(opened, times);
    return { record: after, answer: { kind: 'not-current' } };
  }
  if (wanted.isOpen === true) return { record, answer: mayPass(before, now) };
  if (tagged ? leases.length > 0 : !isOpenToOthers(before, now)) {
    const busyUntil = Math.max(before.wantedUntil, ...leases.map(({ until }) => until));
    const answer: ClaimAnswer = { kind: 'busy', remainingMs: (busyUntil - now) / 1000 };
    if (!tagged || leases.some((lease) => lease.tagged)) return refuse(answer);
    const wantedUntil = now + Math.min(longestWanted, Math.floor(times.lease / wantedPerLease));
    return { record: { ...before, wantedUntil }, answer };
  }
  if (isIndeterminate(record) && (tagged || record?.indeterminateTagged === true))
    return refuse(indeterminate);
  const tainted = isIndeterminate(record) || leases.length > 0;
  const lease: Lease = { token, until: now + times.lease, tagged, tainted };
  const wantedUntil = tagged ? 0 : before.wantedUntil;
  const priorityUntil = tagged ? null : before.priorityUntil;
  return {
    record: { ...before, leases: [...taint(leases), lease], wantedUntil, priorityUntil },
    answer: { kind: 'granted', shopTag: before.shopTag },
  };
}

/** Whether a write without a lease may be sent (within `entityTags.sendBy`). */
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
    const late = replaced(record ?? createRecord(epoch, evictedChangeAt), now, write.tagged);
    const anonymousWrote = late.anonymousWrote || write.isOpen === true;
    const after = { ...late, leases: taint(late.leases), anonymousWrote };
    if (outcome !== 'unknown') return { record: after, answer: null };
    return { record: markIndeterminate(after, now + times.lease, write.tagged), answer: null };
  }
  const leases = without(record.leases, lease.token);
  if (changesNothing) {
    const before = { ...record, leases };
    return { record: saysNothing(before, evictedChangeAt) ? null : before, answer: null };
  }
  const after: TagRecord = { ...replaced(record, now, lease.tagged), leases };
  if (outcome === 'unknown') {
    return { record: markIndeterminate(after, lease.until, lease.tagged), answer: null };
  }
  if (outcome === 'invalidated' || lease.tainted || write.newTag === null)
    return { record: after, answer: null };
  return { record: { ...after, tag: write.newTag, shopTag: write.shopTag }, answer: write.newTag };
}

/** Writes without a tag do not wait for each other, only for a write with a tag that is in progress or waiting. */
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

/** A step of a member of a guarded collection, with the record of the collection. */
export interface MemberStep<T> extends Step<T> {
  readonly collection: TagRecord | null;
}

/** A member as the writes of its whole collection leave it. */
export function ofCollection(member: Opened, { record: whole, ...collection }: Opened): Opened {
  const replacedAt = whole?.replacedAt ?? collection.evictedChangeAt;
  const { record } = member;
  const isOld = record !== null && record.changedAt < replacedAt;
  return {
    ...member,
    evictedChangeAt: Math.max(member.evictedChangeAt, replacedAt),
    record: isOld ? { ...changed(record, replacedAt), leases: taint(record.leases) } : record,
  };
}

/** For its collection, a write of the member is a write without a tag, which excludes writes of the whole. */
export function claimMember(
  member: Opened,
  collection: Opened,
  wanted: Claim,
  times: ProtocolTimes,
): MemberStep<ClaimAnswer> {
  const own = claim(member, wanted, times);
  if (own.answer.kind !== 'granted') return { ...own, collection: collection.record };
  const whole = claim(collection, { ...wanted, tags: null }, times);
  if (whole.answer.kind === 'granted') return { ...own, collection: whole.record };
  return { record: member.record, collection: whole.record, answer: whole.answer };
}

export function endMember(
  member: Opened,
  collection: Opened,
  write: ClaimEnd,
  times: ProtocolTimes,
): MemberStep<string | null> {
  const whole = end(collection, { ...write, tagged: false, newTag: null, shopTag: null }, times);
  return { ...end(member, write, times), collection: whole.record };
}
