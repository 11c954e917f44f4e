import {
  changed,
  createRecord,
  isIndeterminate,
  isLeased,
  type Lease,
  markIndeterminate,
  saysNothing,
  type TagRecord,
  taint,
  without,
} from './tag-record.ts';
import type { Claim, ClaimAnswer, ClaimEnd, LookUp, ReadEnd, ReadStamp, ReadTag } from './tag-store.ts';

/**
 * The claim protocol as pure steps: what is stored and the store's clock go in, what is to be stored and the answer
 * come out. The memory store runs these; `lua.ts` says the same to Redis, and the tests hold the two together.
 * docs/decisions/entity-tag-claims.md explains every line. All times are microseconds of the store's clock.
 */
export interface ProtocolTimes {
  readonly lease: number;
  readonly sendBy: number;
  /** How long a new store hands out nothing. */
  readonly coldStart: number;
  /** A read that took longer is not recorded. */
  readonly longestRead: number;
}

/** The state of a store at one moment; what has run out has had its effect. */
export interface Opened {
  readonly now: number;
  readonly epoch: string;
  /** The end of the cold start; a read that began earlier proves nothing. */
  readonly coldStartUntil: number;
  readonly record: TagRecord | null;
}

export interface Step<T> {
  readonly record: TagRecord | null;
  readonly answer: T;
}

const maxVariants = 32;
const maxLeases = 64;
/** Redis keeps a record in the small form while no field is longer than 64; 37 characters of the digest are plenty. */
const lastSeenLength = 60;
/** How long one claim of a waiting writer keeps others from going in front of it: several times what it polls. */
const longestTurn = 500_000;
const turnsPerLease = 30;
/** How long strangers leave a resource to whom they got in the way of: enough for a read and a write. */
const ownTurnsPerLease = 3;

/** The first step of every operation: records of another epoch are absent, and what has run out has its effect. */
export function open(
  stored: TagRecord | null,
  moment: { readonly now: number; readonly epoch: string; readonly since: number },
  times: ProtocolTimes,
): Opened {
  const { now, epoch, since } = moment;
  const record = stored !== null && stored.epoch === epoch ? runOut(stored, now) : null;
  return { now, epoch, coldStartUntil: since + times.coldStart, record };
}

function runOut(stored: TagRecord, now: number): TagRecord {
  let record = stored;
  for (const lease of stored.leases) {
    if (lease.until > now) continue;
    const before = lease.sent ? changed(record, lease.until) : record;
    record = { ...before, leases: without(record.leases, lease.token) };
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
  const stamp: ReadStamp | null =
    unsettled === 'cold-start' || isIndeterminate(record)
      ? null
      : { epoch, generation: record?.generation ?? 0, startedAt: now };
  const known = variant === null ? undefined : record?.fingerprints[variant];
  const recorded =
    known === undefined || unsettled !== null
      ? null
      : { ageMs: (now - known.at) / 1000, fields: known.fields };
  return { stamp, tag: record?.tag ?? null, unsettled, recorded };
}

export function endRead(opened: Opened, read: ReadEnd, times: ProtocolTimes): Step<ReadTag | null> {
  const { now, epoch, record } = opened;
  if (isColdStart(opened) || isIndeterminate(record)) return { record, answer: null };
  if (!isUnchangedSince(opened, read.stamp, times)) {
    return { record: read.isOfStranger === true ? record : giveTurn(opened, times), answer: null };
  }
  const known = record?.fingerprints[read.variant];
  if (read.fingerprint === null || isLeased(record)) {
    const isUnchanged = known !== undefined && (read.fingerprint ?? known.value) === known.value;
    return {
      record,
      answer:
        record === null || record.tag === null ? null : { tag: record.tag, isUnchanged, isReplaced: false },
    };
  }
  const fingerprint = { value: read.fingerprint, at: read.stamp.startedAt, fields: read.fields ?? '' };
  const lastSeen = `${read.variant}|${read.fingerprint}`.slice(0, lastSeenLength);
  const stored = record ?? createRecord(epoch, now);
  const isReplaced = stored.replaced === lastSeen;
  const before = { ...stored, lastSeen, replaced: '' };
  const only = { [read.variant]: fingerprint };
  const first = { ...before, tag: read.newTag, shopTag: read.shopTag, fingerprints: only };
  const answer = { tag: read.newTag, isUnchanged: false, isReplaced };
  if (before.tag === null) return { record: first, answer };
  if (known !== undefined && known.value !== read.fingerprint) {
    return { record: { ...first, generation: before.generation + 1, changedAt: now }, answer };
  }
  const isFull = known === undefined && Object.keys(before.fingerprints).length >= maxVariants;
  const fingerprints = isFull ? only : { ...before.fingerprints, ...only };
  const shopTag = read.isOfCollection ? (before.shopTag ?? read.shopTag) : read.shopTag;
  return {
    record: { ...before, shopTag, fingerprints },
    answer: { tag: before.tag, isUnchanged: known !== undefined, isReplaced },
  };
}

function isUnchangedSince(opened: Opened, stamp: ReadStamp, times: ProtocolTimes): boolean {
  const { now, epoch, coldStartUntil, record } = opened;
  const lastedFor = now - stamp.startedAt;
  // Below 0: the clock was set back meanwhile.
  if (stamp.epoch !== epoch || lastedFor > times.longestRead || lastedFor < 0) return false;
  if (stamp.generation !== null) return stamp.generation === (record?.generation ?? 0);
  return stamp.startedAt > (record?.changedAt ?? 0) && stamp.startedAt > coldStartUntil;
}

export function claim(opened: Opened, wanted: Claim, times: ProtocolTimes): Step<ClaimAnswer> {
  const { token, tags } = wanted;
  const { now, epoch, coldStartUntil, record } = opened;
  const refuse = (answer: ClaimAnswer): Step<ClaimAnswer> => ({ record, answer });
  if (isColdStart(opened)) return refuse({ kind: 'cold-start', remainingMs: (coldStartUntil - now) / 1000 });
  const before = record ?? createRecord(epoch, now);
  const { leases, indeterminateUntil } = before;
  const indeterminate: ClaimAnswer = {
    kind: 'indeterminate',
    remainingMs: (indeterminateUntil - now) / 1000,
  };
  if (tags !== null && (record === null || record.tag === null || !tags.includes(record.tag))) {
    if (isIndeterminate(record)) return refuse(indeterminate);
    const after = wanted.isOfStranger === true ? record : giveTurn(opened, times);
    return { record: after, answer: { kind: 'not-current' } };
  }
  if (wanted.isOpen === true) return { record, answer: mayPass(before, now) };
  if (tags === null ? !isOpenToOthers(before, now) : leases.length > 0) {
    const busyUntil = Math.max(before.wantedUntil, ...leases.map(({ until }) => until));
    const answer: ClaimAnswer = { kind: 'busy', remainingMs: (busyUntil - now) / 1000 };
    if (tags === null || leases.some(({ tagged }) => tagged)) return refuse(answer);
    const wantedUntil = now + Math.min(longestTurn, Math.floor(times.lease / turnsPerLease));
    return { record: { ...before, wantedUntil }, answer };
  }
  if (isIndeterminate(record) && (tags !== null || record?.indeterminateTagged === true))
    return refuse(indeterminate);
  const tainted = isIndeterminate(record) || leases.length > 0;
  const lease: Lease = { token, until: now + times.sendBy, tagged: tags !== null, tainted, sent: false };
  const wantedUntil = tags === null ? before.wantedUntil : 0;
  const turnUntil = tags === null ? before.turnUntil : null;
  return {
    record: { ...before, leases: [...taint(leases), lease], wantedUntil, turnUntil },
    answer: { kind: 'granted', shopTag: before.shopTag },
  };
}

/** Whether a write without a lease may be sent; the permission holds for `sendBy`. */
function mayPass(
  { leases, wantedUntil, turnUntil, indeterminateUntil, indeterminateTagged }: TagRecord,
  now: number,
): ClaimAnswer {
  const tagged = leases.filter((lease) => lease.tagged).map(({ until }) => until);
  const busyUntil = Math.max(wantedUntil, turnUntil ?? 0, ...tagged);
  if (busyUntil > now) return { kind: 'busy', remainingMs: (busyUntil - now) / 1000 };
  if (indeterminateTagged) return { kind: 'indeterminate', remainingMs: (indeterminateUntil - now) / 1000 };
  return { kind: 'granted', shopTag: null };
}

/** As much time for those who waited in vain as for strangers, so that neither shuts the other out. */
function giveTurn({ now, record }: Opened, { lease }: ProtocolTimes): TagRecord | null {
  const lasts = Math.floor(lease / ownTurnsPerLease);
  if (record === null || !record.strangersWrote) return record;
  if (record.turnUntil !== null && now < record.turnUntil + lasts) return record;
  return { ...record, turnUntil: now + lasts };
}

/** Called just before the first byte leaves; `false`: the lease is gone, and the write must not leave. */
export function markSent({ record }: Opened, token: string, times: ProtocolTimes): Step<boolean> {
  const own = record?.leases.find((lease) => lease.token === token);
  if (record === null || own === undefined) return { record, answer: false };
  const until = own.sent ? own.until : own.until - times.sendBy + times.lease;
  const leases = record.leases.map((lease) => (lease === own ? { ...own, until, sent: true } : lease));
  return { record: { ...record, leases }, answer: true };
}

export function end(opened: Opened, write: ClaimEnd, times: ProtocolTimes): Step<string | null> {
  const { now, epoch, record } = opened;
  const { outcome } = write;
  const lease = record?.leases.find(({ token }) => token === write.token);
  const changesNothing = outcome === 'unsent' || outcome === 'refused';
  if (record === null || lease === undefined) {
    if (changesNothing) return { record, answer: null };
    const late = changed(record ?? createRecord(epoch, now), now);
    const after = {
      ...late,
      leases: taint(late.leases),
      strangersWrote: late.strangersWrote || write.isOpen === true,
    };
    const isUnknown = outcome === 'unknown';
    return {
      record: isUnknown ? markIndeterminate(after, now + times.lease, write.tagged) : after,
      answer: null,
    };
  }
  const leases = without(record.leases, lease.token);
  if (changesNothing) {
    const before = { ...record, leases };
    return { record: saysNothing(before) ? null : before, answer: null };
  }
  const after: TagRecord = { ...changed(record, now), leases };
  if (outcome === 'unknown') {
    return { record: markIndeterminate(after, lease.until, lease.tagged), answer: null };
  }
  if (outcome === 'invalidated' || lease.tainted) return { record: after, answer: null };
  const applied = { ...after, replaced: record.lastSeen };
  if (write.newTag === null) return { record: applied, answer: null };
  return { record: { ...applied, tag: write.newTag, shopTag: write.shopTag }, answer: write.newTag };
}

/** Writes without a tag pass one another, but neither one with a tag that runs nor one that waits. */
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
