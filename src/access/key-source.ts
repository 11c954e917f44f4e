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

/** Keys to try in turn (empty: there is no such key); or, if the keys are not available, when to try again. */
export type KeyLookup = { readonly keys: Keys } | { readonly retryAfterSeconds: number };

type Kind = 'jwks' | 'files' | 'secret';

interface Loads {
  /** Keys of the last document that cannot be used. */
  unusableKeys: number;
  loads: number;
  failures: number;
  lastSuccessMs?: number | undefined;
  /** A stable word if the last load failed. */
  lastError?: string | undefined;
}

/** Maximum number of keys that are tried for one token: each costs a verification, and bad tokens are cheap for an attacker. */
export const maxCandidates = 16;

/** Equal for equal sets of keys, whatever their order. */
function describe(keys: Keys): string {
  return keys.map(identify).sort().join('\n');
}

function identify(key: VerificationKey): string {
  return JSON.stringify([key.kid ?? null, key.algorithms, key.fingerprint]);
}

/** Removes repeated keys, and finds each `kid` that several keys share: it does not identify a key. */
export function mergeKeys(keys: Keys) {
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

/** The last good keys of a source, and how its loads went. Listeners must not throw. */
export class KeptKeys {
  readonly #kind: Kind;
  readonly #listeners = new Set<() => void>();
  readonly #loads: Loads = { unusableKeys: 0, loads: 0, failures: 0 };
  #keys: Keys = [];

  constructor(kind: Kind) {
    this.#kind = kind;
  }

  /**
   * The keys that may have signed a token with this header, without those that were `tried`; never rejects. If it has none,
   * it may load its keys again: they may have rotated.
   */
  keysFor(header: TokenHeader, tried?: Keys): KeyLookup | Promise<KeyLookup> {
    return this.#keys.length === 0 ? { retryAfterSeconds: 1 } : { keys: this.find(header, tried) };
  }

  /** The keys in use, for the console; the caller chooses which parts it shows. */
  current(): Keys {
    return this.#keys;
  }

  /** Calls `listener` when the keys change. Returns a function that stops this. */
  readonly onChange = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };

  /** `keys`: usable ones now; 0: there never were any. */
  status() {
    // A secret is one key for each algorithm.
    const keys = this.#kind === 'secret' ? 1 : this.#keys.length;
    return { kind: this.#kind, keys, ...this.#loads };
  }

  knows(kid: string): boolean {
    return this.#keys.some((key) => key.kid === kid);
  }

  /**
   * The keys to try, all of which fit `alg`: keys with the token's `kid`; if that is unknown, keys without `kid` (PEM files
   * have none). For a token without `kid`, which many shops issue, all keys.
   */
  find({ alg, kid }: TokenHeader, tried: Keys = []): Keys {
    const wanted = kid !== undefined && this.knows(kid) ? kid : undefined;
    return this.#keys
      .filter((key) => (kid === undefined || key.kid === wanted) && key.algorithms.includes(alg))
      .slice(0, maxCandidates)
      .filter((key) => !tried.some(({ fingerprint }) => fingerprint === key.fingerprint));
  }

  /** Replaces all keys. `nowMs`: undefined for a source that cannot fail. */
  loaded(keys: Keys, unusableKeys = 0, nowMs?: number): void {
    this.#loads.loads++;
    Object.assign(this.#loads, { unusableKeys, lastSuccessMs: nowMs, lastError: undefined });
    if (describe(keys) === describe(this.#keys)) return;
    this.#keys = keys;
    for (const listener of this.#listeners) listener();
  }

  /** The last good keys stay. */
  failed(error: string, unusableKeys = this.#loads.unusableKeys): void {
    this.#loads.loads++;
    this.#loads.failures++;
    Object.assign(this.#loads, { unusableKeys, lastError: error });
  }
}

export type KeySource = Pick<KeptKeys, 'keysFor' | 'onChange' | 'current' | 'status'>;
