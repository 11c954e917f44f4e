/** What is stored of a resource, and its basic changes; `protocol.ts` is built from them. Times: microseconds of the store's clock. */
export interface TagRecord {
  readonly epoch: string;
  readonly tag: string | null;
  readonly shopTag: string | null;
  /** By variant. */
  readonly fingerprints: Readonly<
    Record<string, { readonly value: string; readonly at: number; readonly fields: string }>
  >;
  /** Either one with a tag, or any number without. */
  readonly leases: readonly Lease[];
  /** A write with the current tag waits for the leases to end: until then no new one is granted before it. */
  readonly wantedUntil: number;
  /** An anonymous write has changed something. */
  readonly anonymousWrote: boolean;
  /** Until then anonymous writes wait for a verified user whom one of them made fail. `null`: none, or it was used. */
  readonly priorityUntil: number | null;
  /** A write with an unknown outcome may take effect until then; 0: none. */
  readonly indeterminateUntil: number;
  /** One with a tag is among the unknown. */
  readonly indeterminateTagged: boolean;
  /** The state may have changed then for the last time; what was read before is not recorded. */
  readonly changedAt: number;
}

/** Named by a write that creates a member: it is current while the member has no tag. No client can send it. */
export const noTag = '';

export interface Lease {
  readonly token: string;
  readonly until: number;
  readonly tagged: boolean;
  /** Others may write at the same time, so its success does not tell the state: it leaves no tag. */
  readonly tainted: boolean;
}

/** Whether a record says no more than none, so that ids that do not exist cannot fill the store. */
export function saysNothing(record: TagRecord, evictedChangeAt: number): boolean {
  const { tag, changedAt, indeterminateUntil, leases } = record;
  return tag === null && changedAt <= evictedChangeAt && indeterminateUntil === 0 && leases.length === 0;
}

export function without(leases: readonly Lease[], gone: string): readonly Lease[] {
  return leases.filter(({ token }) => token !== gone);
}

export function taint(leases: readonly Lease[]): readonly Lease[] {
  return leases.map((lease) => ({ ...lease, tainted: true }));
}

/** The state may be another one since `at`: no tag, and no read that began before may set one. */
export function changed(record: TagRecord, at: number): TagRecord {
  return { ...record, tag: null, shopTag: null, fingerprints: {}, changedAt: Math.max(record.changedAt, at) };
}

export function markIndeterminate(record: TagRecord, until: number, tagged: boolean): TagRecord {
  return {
    ...record,
    indeterminateUntil: Math.max(record.indeterminateUntil, until),
    indeterminateTagged: record.indeterminateTagged || tagged,
  };
}

/** `evictedChangeAt`: the latest change of a record that the store evicted, which this one may have been. */
export function createRecord(epoch: string, evictedChangeAt: number): TagRecord {
  return {
    epoch,
    tag: null,
    shopTag: null,
    fingerprints: {},
    leases: [],
    wantedUntil: 0,
    anonymousWrote: false,
    priorityUntil: null,
    indeterminateUntil: 0,
    indeterminateTagged: false,
    changedAt: evictedChangeAt,
  };
}

export function isLeased(record: TagRecord | null): boolean {
  return record !== null && record.leases.length > 0;
}

export function isIndeterminate(record: TagRecord | null): boolean {
  return record !== null && record.indeterminateUntil !== 0;
}
