import type { Member, Register } from './members.ts';

/** What follows from what the processes that share a store told each other. */
export interface Agreement {
  /** A new store hands out nothing for so long: the longest lease of all, since any of them may have a write under way. */
  readonly holdMs: number;
  /** Somebody passes writes that this process would check: no tag may be given out. */
  readonly refusesTags: boolean;
  /** The tokens in use are known by other digests than this process would make. */
  readonly refusesTokens: boolean;
  /** The data is another shop's, and both have a name: nothing may be used. */
  readonly isForeign: boolean;
  /** In words for people; empty when all is well. */
  readonly problems: readonly string[];
}

/** Pure: docs/decisions/store-state.md has the table. */
export function agree(mine: Member, { owner, isOwnerNamed, digestKey, others }: Register): Agreement {
  const problems: string[] = [];
  const leases = others.map(({ leaseMs }) => leaseMs).filter((leaseMs) => leaseMs > 0);
  const holdMs = Math.max(mine.leaseMs, ...leases);
  if (mine.leaseMs > 0 && leases.some((leaseMs) => leaseMs !== mine.leaseMs)) {
    const all = [...new Set([mine.leaseMs, ...leases])].map((ms) => `${ms / 1000}s`).join(', ');
    problems.push(
      `entityTags.lease differs between replicas (${all}): the longest one counts for a new store`,
    );
  }
  const untracked = mine.tracked.filter((line) => others.some(({ tracked }) => !tracked.includes(line)));
  if (untracked.length > 0) {
    problems.push(
      `another replica does not track ${untracked.join(', ')} (entityTags.resources): no tags are given out and tracked writes get 503 until all do`,
    );
  }
  const refusesTokens = mine.digestKey !== '' && digestKey !== '' && digestKey !== mine.digestKey;
  if (refusesTokens) {
    problems.push(
      'refreshTokens.digestKey is another one than that of the replicas that were there before: exchanges get 503 until these are gone',
    );
  }
  const isAnother = owner !== mine.owner;
  const isForeign = isAnother && isOwnerNamed && mine.isNamed;
  if (isAnother) {
    problems.push(
      `the data under store.prefix belongs to ${JSON.stringify(owner)}, and this is ${JSON.stringify(mine.owner)}: give each shop a store.prefix of its own, or set store.owner`,
    );
  }
  return { holdMs, refusesTags: untracked.length > 0, refusesTokens, isForeign, problems };
}
