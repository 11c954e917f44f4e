import type { KeyObject, webcrypto } from 'node:crypto';

/** The parameters of a JOSE header that choose the key. `jku`, `jwk`, `x5u` and `x5c` are ignored: only configured keys count. */
export interface TokenHeader {
  readonly alg: string;
  readonly kid: string | undefined;
}

export interface VerificationKey {
  readonly kid: string | undefined;
  /** The configured algorithms that this key may verify: only those that its type, curve and `alg` allow. */
  readonly algorithms: readonly string[];
  readonly material: KeyObject | webcrypto.CryptoKey;
  /** Equal for equal keys; derived from public octets only. */
  readonly fingerprint: string;
}

export type Keys = readonly VerificationKey[];

/** Keys to try in turn (empty: there is no such key), or when to try again because the keys are not available. */
export type KeyLookup = { readonly keys: Keys } | { readonly retryAfterSeconds: number };

export interface KeySource {
  /**
   * The keys that may have signed a token with this header, without those that were `tried`; never rejects. If there are
   * none, it may ask where they come from: keys may have rotated.
   */
  keysFor(header: TokenHeader, tried?: Keys): KeyLookup | Promise<KeyLookup>;
  /** Calls `listener` when the keys change. Returns a function that stops this. */
  onChange(listener: () => void): () => void;
  status(): KeySourceStatus;
  /** The keys in use, for the console; the caller chooses which parts it shows. */
  current(): Keys;
  /** Gets the first keys. Resolves even if the source is down, as long as it may come back. */
  start?(): Promise<void>;
  close?(): void;
}

export interface KeySourceStatus {
  readonly kind: 'jwks' | 'files' | 'secret';
  /** Usable keys now. 0: there never were any. */
  readonly keys: number;
  /** Keys of the last document that cannot be used. */
  readonly unusableKeys: number;
  readonly loads: number;
  readonly failures: number;
  readonly lastSuccessMs: number | undefined;
  /** A stable word if the last load failed. */
  readonly lastError: string | undefined;
}

/** Most keys that are tried for one token: each costs a verification, and bad tokens are cheap for an attacker. */
export const maxCandidates = 16;

/** The keys of one moment. Exported for its tests. */
export class KeySet {
  readonly keys: Keys;

  constructor(keys: Keys) {
    this.keys = keys;
  }

  knows(kid: string): boolean {
    return this.keys.some((key) => key.kid === kid);
  }

  /**
   * The keys to try, all of which fit `alg`: keys with the token's `kid`; if that is unknown, keys without `kid` (PEM files
   * have none). For a token without `kid`, which many shops issue, all keys.
   */
  find({ alg, kid }: TokenHeader, tried: Keys = []): Keys {
    const wanted = kid !== undefined && this.knows(kid) ? kid : undefined;
    return this.keys
      .filter((key) => (kid === undefined || key.kid === wanted) && key.algorithms.includes(alg))
      .slice(0, maxCandidates)
      .filter((key) => !tried.some(({ fingerprint }) => fingerprint === key.fingerprint));
  }

  isSameAs(other: KeySet): boolean {
    return describe(this.keys) === describe(other.keys);
  }
}

/** Equal for equal sets of keys, whatever their order. */
function describe(keys: Keys): string {
  return keys.map(identify).sort().join('\n');
}

function identify(key: VerificationKey): string {
  return JSON.stringify([key.kid ?? null, key.algorithms, key.fingerprint]);
}

/** Removes repeated keys, and finds each `kid` of several keys: a token with it would not tell which key it means. */
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

/** Keys that a source replaces as a whole. Listeners must not throw. */
export abstract class KeptKeys implements KeySource {
  readonly #listeners = new Set<() => void>();
  #set = new KeySet([]);

  abstract status(): KeySourceStatus;

  keysFor(header: TokenHeader, tried?: Keys): KeyLookup | Promise<KeyLookup> {
    return this.#set.keys.length === 0 ? { retryAfterSeconds: 1 } : { keys: this.#set.find(header, tried) };
  }

  current(): Keys {
    return this.#set.keys;
  }

  readonly onChange: KeySource['onChange'] = (listener) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };

  protected get set(): KeySet {
    return this.#set;
  }

  protected replace(keys: Keys): void {
    const next = new KeySet(keys);
    if (next.isSameAs(this.#set)) return;
    this.#set = next;
    for (const listener of this.#listeners) listener();
  }
}
