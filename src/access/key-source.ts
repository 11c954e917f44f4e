import type { KeyObject, webcrypto } from 'node:crypto';
import type { TokenHeader } from './token-header.ts';

/** A key that was validated at load. */
export interface VerificationKey {
  readonly kid: string | undefined;
  /** The configured algorithms that this key may verify: never more than its type, curve and `alg` allow. */
  readonly algorithms: readonly string[];
  readonly material: KeyObject | webcrypto.CryptoKey;
  /** The same for the same key; of public octets only. */
  readonly fingerprint: string;
}

export type Keys = readonly VerificationKey[];

/** Keys to be tried in turn (none: nobody has such a key), or: they cannot be had at the moment. */
export type KeyLookup = { readonly keys: Keys } | { readonly retryAfterSeconds: number };

/** Where verification keys come from: files, a secret or a JWKS URL. */
export interface KeySource {
  /** Keys that a token with this header may have been signed with; never rejects. */
  keysFor(header: TokenHeader): KeyLookup | Promise<KeyLookup>;
  /**
   * Keys that came since `tried` were given out, and did not fit: where a token does not say which key it means, only
   * its signature can tell that keys have rotated. May ask the source once more. None: there is no newer key.
   */
  renew(header: TokenHeader, tried: Keys): KeyLookup | Promise<KeyLookup>;
  /** Tells that the set of keys is another; returns the way to stop it. */
  onChange(listener: () => void): () => void;
  status(): KeySourceStatus;
  /** Gets the first keys. A source that may come up later resolves all the same. */
  start(): Promise<void>;
  close(): void;
}

export interface KeySourceStatus {
  readonly kind: 'jwks' | 'files' | 'secret';
  /** Usable keys now. 0: none were ever had. */
  readonly keys: number;
  /** Keys of the last document that cannot be used. */
  readonly unusableKeys: number;
  /** Times that keys were loaded or fetched, and times that this failed. */
  readonly loads: number;
  readonly failures: number;
  /** Milliseconds since the epoch. */
  readonly lastSuccessMs: number | undefined;
  /** A stable word while the last load has failed. */
  readonly lastError: string | undefined;
}
