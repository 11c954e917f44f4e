import type { Keys, VerificationKey } from './key-source.ts';
import type { TokenHeader } from './token-header.ts';

/** Keys tried at most for one token: each costs a verification, and bad tokens are cheap to make. */
export const maxCandidates = 16;

/** The keys of one moment. */
export interface KeySet {
  readonly keys: Keys;
  /** Whether a key bears this very `kid`. */
  knows(kid: string): boolean;
  /**
   * The keys to try: those of the token's `kid`; where no key bears it, those that have none (PEM files know no
   * `kid`); all where the token has none (shops' tokens often do). Only keys that fit `alg`.
   */
  find(header: TokenHeader): Keys;
  /** The same without those that were tried. */
  findUntried(header: TokenHeader, tried: Keys): Keys;
  isSameAs(other: KeySet): boolean;
}

export function createKeySet(keys: Keys): KeySet {
  const knows = (kid: string) => keys.some((key) => key.kid === kid);
  function find({ alg, kid }: TokenHeader): Keys {
    const wanted = kid !== undefined && knows(kid) ? kid : undefined;
    return keys
      .filter((key) => (kid === undefined || key.kid === wanted) && key.algorithms.includes(alg))
      .slice(0, maxCandidates);
  }
  return {
    keys,
    knows,
    find,
    findUntried(header, tried) {
      const fingerprints = new Set(tried.map((key) => key.fingerprint));
      return find(header).filter((key) => !fingerprints.has(key.fingerprint));
    },
    isSameAs: (other) => describe(keys) === describe(other.keys),
  };
}

/** The same for the same keys, in whatever order. */
function describe(keys: Keys): string {
  return keys.map(identify).sort().join('\n');
}

function identify(key: VerificationKey): string {
  return JSON.stringify([key.kid ?? null, key.algorithms, key.fingerprint]);
}

/** Each key once, and the `kid`s that more than one key bears: a token could not say which of them it means. */
export function mergeKeys(keys: Keys): {
  readonly keys: Keys;
  readonly ambiguousKids: readonly string[];
} {
  const merged = [...new Map(keys.map((key) => [identify(key), key])).values()];
  const fingerprints = new Map<string, string>();
  const ambiguous = new Set<string>();
  for (const { kid, fingerprint } of merged) {
    if (kid === undefined) continue;
    const known = fingerprints.get(kid);
    if (known !== undefined && known !== fingerprint) ambiguous.add(kid);
    fingerprints.set(kid, fingerprint);
  }
  return { keys: merged, ambiguousKids: [...ambiguous] };
}
