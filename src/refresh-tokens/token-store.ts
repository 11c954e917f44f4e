/**
 * The port behind which the states of refresh tokens are kept. Each operation is atomic over every replica that shares
 * the store; docs/decisions/refresh-token-states.md says why each exists. Rejects with `RedisUnavailable` only.
 */
export interface TokenStore {
  readonly kind: 'memory' | 'redis';
  /** Before an exchange is forwarded. Never repeat one that got no answer: release it, and begin anew. */
  claim(token: TokenDigest, op: string, holdMs: number): Eventually<ClaimAnswer>;
  /** The exchange did not happen. Nothing if the claim is not `op`'s any more. */
  release(token: TokenDigest, op: string): Eventually<void>;
  /** The shop has exchanged it. `owner` is filled in where none was known. May be repeated. */
  markUsed(token: TokenDigest, owner: SubjectDigest | null): Eventually<void>;
  /** The shop has issued it. A token that was exchanged, or revoked, stays so. */
  record(token: TokenDigest, issued: IssuedRecord): Eventually<void>;
  /** Puts the token into the subject's index, and gives the generation for its record. */
  addToSubject(subject: SubjectDigest, token: TokenDigest, lifetimeMs: number): Eventually<number>;
  /** A token of a lower generation was revoked with all others of its subject. */
  generationOf(subject: SubjectDigest): Eventually<number>;
  /** `foreign`: it is another subject's, nothing was noted. */
  noteRevocation(token: TokenDigest, by: SubjectDigest, op: string): Eventually<'noted' | 'foreign'>;
  /** Makes a pending note final, or takes it back. May be repeated. */
  settleRevocation(token: TokenDigest, by: SubjectDigest, op: string, stands: boolean): Eventually<void>;
  noteRevocationOfAll(subject: SubjectDigest, op: string): Eventually<void>;
  settleRevocationOfAll(subject: SubjectDigest, op: string, stands: boolean): Eventually<void>;
  /** All tokens, or a subject's, in no order. Those that are known only by a claim or a note are left out. */
  list(subject?: SubjectDigest): AsyncIterable<TokenEntry>;
  /** Deletes what has expired, whatever the retention; gives how many. */
  purgeExpired(subject?: SubjectDigest): Promise<number>;
}

export type Eventually<T> = T | Promise<T>;

/** Hexadecimal; nothing of a token can be read or chosen in it. */
export type TokenDigest = string & { readonly tokenDigest: true };
export type SubjectDigest = string & { readonly subjectDigest: true };

export type ClaimAnswer =
  | {
      readonly kind: 'granted';
      readonly subject: SubjectDigest | null;
      readonly generation: number;
      /** Who has revoked it, where it is not known whose it is. */
      readonly revokedBy: readonly SubjectDigest[];
    }
  | { readonly kind: 'used' | 'revoked' | 'expired' }
  /** Another exchange of it is under way, or was and its outcome is not known, for so long at most. */
  | { readonly kind: 'in-exchange'; readonly remainingMs: number };

export interface IssuedRecord {
  readonly subject: SubjectDigest | null;
  readonly generation: number;
  readonly lifetimeMs: number;
}

export type TokenState = 'valid' | 'in-exchange' | 'used' | 'revoked' | 'expired';

/** A token as ops may see it; times are milliseconds since 1970 by the store's clock. */
export interface TokenEntry {
  readonly token: TokenDigest;
  readonly subject: SubjectDigest | null;
  readonly state: TokenState;
  readonly issuedAtMs: number;
  readonly expiresAtMs: number;
  readonly usedAtMs: number | null;
  /** Null too where it went with all of its subject's. */
  readonly revokedAtMs: number | null;
}

/** What both stores are built from. */
export interface TokenStoreOptions {
  /** Milliseconds: expiry of a token that the shop alone has seen issued, and how long a note on such a one is kept. */
  readonly lifetimeMs: number;
  /** Milliseconds that a record outlives its token's expiry; `keep`: for good. */
  readonly retentionMs: number | 'keep';
}
