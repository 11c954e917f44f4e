/**
 * What is stored of a resource, and what may become of it: the words in which `protocol.ts` says its steps. All times are
 * microseconds of the store's clock.
 */
export interface TagRecord {
  readonly epoch: string;
  readonly generation: number;
  readonly tag: string | null;
  readonly shopTag: string | null;
  /** By variant. */
  readonly fingerprints: Readonly<
    Record<string, { readonly value: string; readonly at: number; readonly fields: string }>
  >;
  /** One with a tag, alone; or any number of those without: they promise nothing to one another. */
  readonly leases: readonly Lease[];
  /** A write with the current tag waits for the leases to end: until then no other one is given beside them. */
  readonly wantedUntil: number;
  /** A stranger's write has changed something: it may be in somebody's way. */
  readonly strangersWrote: boolean;
  /**
   * Strangers' writes wait until then, for somebody who is verified and whose read or write another one of them got in the way of.
   * `null`: nobody was given such a turn, or it was used.
   */
  readonly turnUntil: number | null;
  /** An unknown write may land until then; 0: none. */
  readonly indeterminateUntil: number;
  /** One with a tag is among the unknown. */
  readonly indeterminateTagged: boolean;
  readonly changedAt: number;
  /** The last representation that was recorded, as the beginning of `variant|fingerprint`. */
  readonly lastSeen: string;
  /** The one that an applied write replaced: who is shown it now is shown an old state. */
  readonly replaced: string;
}

export interface Lease {
  readonly token: string;
  readonly until: number;
  readonly tagged: boolean;
  /** Others may write beside it: its success tells nobody what the state is now, and leaves no tag. */
  readonly tainted: boolean;
  /** Until then nothing has left, and it ends after `sendBy` as if it had never been. */
  readonly sent: boolean;
}

/** Made for a claim that came to nothing, it says no more than none: ids that nobody has must not fill the store. */
export function saysNothing({ tag, changedAt, indeterminateUntil, leases }: TagRecord): boolean {
  return tag === null && changedAt === 0 && indeterminateUntil === 0 && leases.length === 0;
}

export function without(leases: readonly Lease[], gone: string): readonly Lease[] {
  return leases.filter(({ token }) => token !== gone);
}

export function taint(leases: readonly Lease[]): readonly Lease[] {
  return leases.map((lease) => ({ ...lease, tainted: true }));
}

/** The state may be another one since `at`: no tag, and no read that began before may set one. */
export function changed(record: TagRecord, at: number): TagRecord {
  return {
    ...untagged(record),
    generation: record.generation + 1,
    changedAt: Math.max(record.changedAt, at),
  };
}

function untagged(record: TagRecord): TagRecord {
  return { ...record, tag: null, shopTag: null, fingerprints: {} };
}

export function markIndeterminate(record: TagRecord, until: number, tagged: boolean): TagRecord {
  return {
    ...record,
    indeterminateUntil: Math.max(record.indeterminateUntil, until),
    indeterminateTagged: record.indeterminateTagged || tagged,
  };
}

/** The generation starts at the clock, so that a record that was lost and made anew never repeats one. */
export function createRecord(epoch: string, now: number): TagRecord {
  return {
    epoch,
    generation: now,
    tag: null,
    shopTag: null,
    fingerprints: {},
    leases: [],
    wantedUntil: 0,
    strangersWrote: false,
    turnUntil: null,
    indeterminateUntil: 0,
    indeterminateTagged: false,
    changedAt: 0,
    lastSeen: '',
    replaced: '',
  };
}

export function isLeased(record: TagRecord | null): boolean {
  return record !== null && record.leases.length > 0;
}

export function isIndeterminate(record: TagRecord | null): boolean {
  return record !== null && record.indeterminateUntil !== 0;
}
