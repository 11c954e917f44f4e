import type { Eventually } from '../lib/eventually.ts';
/**
 * The port to the store of refresh tokens. Each operation is atomic among all replicas that share the store;
 * docs/decisions/refresh-token-states.md says why each exists. Rejects with `RedisUnavailable` only.
 */
export interface TokenStore {
  /**
   * Claims the token for `holdMs`, before a refresh is forwarded. A claim without a reply must not be repeated: release it, and
   * begin again with another `op`.
   */
  claim(token: TokenDigest, op: string, holdMs: number): Eventually<ClaimAnswer>;
  /** Extends the claim of `op` to `holdMs` from now, for the whole refresh, which must not be sent unless it is `confirmed`. */
  confirm(token: TokenDigest, op: string, holdMs: number): Eventually<'confirmed' | 'lost'>;
  /** Ends the claim: the refresh did not happen. No effect if the claim is not `op`'s any more. */
  release(token: TokenDigest, op: string): Eventually<void>;
  /** The outcome of the refresh is not known: its claim stays until it lapses, and is reported as indeterminate. */
  markIndeterminate(token: TokenDigest, op: string): Eventually<void>;
  /**
   * The shop has refreshed the token. May be repeated. Returns its family, which may have been recorded only after the claim;
   * `full`: the token is unknown and not proven, and the book is full.
   */
  markUsed(token: TokenDigest, use: Use): Eventually<FamilyId | 'full'>;
  /** The shop has issued the token. One that was refreshed or revoked stays so. */
  record(token: TokenDigest, issued: IssuedRecord): Eventually<void>;
  /** Adds the token to the subject's index. Returns what its generation is computed from. */
  addToSubject(subject: SubjectDigest, token: TokenDigest, lifetimeMs: number): Eventually<Standing>;
  /** The subject's generation; tokens of a lower one were revoked by `mine`. */
  generationOf(subject: SubjectDigest): Eventually<number>;
  /** Ends every token of the family, and those that are recorded later. May be repeated. */
  endFamily(family: FamilyId, lifetimeMs: number): Eventually<void>;
  isFamilyEnded(family: FamilyId): Eventually<boolean>;
  /**
   * Notes a revocation, pending until it is settled. `foreign`: the token is another subject's, and `by` is not the `holder`;
   * `full`: the token is unknown and the book is full. In both cases nothing is noted.
   */
  noteRevocation(token: TokenDigest, by: SubjectDigest, op: string): Eventually<NoteAnswer>;
  /** Makes a pending note final (`stands`), or takes it back. May be repeated. */
  settleRevocation(token: TokenDigest, by: SubjectDigest, op: string, stands: boolean): Eventually<void>;
  /** Notes a `mine`. Returns its generation, to be passed to `settleRevocationOfAll`, which may be repeated. */
  noteRevocationOfAll(subject: SubjectDigest, op: string): Eventually<number>;
  settleRevocationOfAll(subject: SubjectDigest, op: string, noted: number, stands: boolean): Eventually<void>;
  /** All known tokens, or a subject's, in no order. */
  list(subject?: SubjectDigest): AsyncIterable<TokenEntry>;
  /** Deletes expired tokens, whatever the retention. Resolves to how many. */
  purgeExpired(subject?: SubjectDigest): Promise<number>;
}

/** Hexadecimal, keyed: a client can neither read a token from it nor choose it. */
export type TokenDigest = string & { readonly tokenDigest: true };
export type SubjectDigest = string & { readonly subjectDigest: true };

/** In place of a subject: whoever has the token itself may revoke it, whosever it is. Not the digest of any name. */
export const holder = 'f'.repeat(32) as SubjectDigest;

/** Random name of all tokens that descend from one login. */
export type FamilyId = string & { readonly familyId: true };

/** A subject's generation, and the store's clock at that moment. */
export interface Standing {
  readonly generation: number;
  /** Microseconds since 1970. */
  readonly nowMicros: number;
}

export type NoteAnswer = 'noted' | 'foreign' | 'full';

/** What a token can be ended by together with others: its subject's `mine`, the end of its family. */
export interface Roots {
  readonly subject: SubjectDigest | null;
  readonly generation: number;
  readonly family: FamilyId | null;
}

export type ClaimAnswer =
  | (Roots & {
      readonly kind: 'granted';
      /** Whether it was issued or refreshed through shopward. */
      readonly isKnown: boolean;
      /** Who has revoked it, while its owner is not known. */
      readonly revokedBy: readonly SubjectDigest[];
    })
  | UsedAnswer
  | { readonly kind: 'revoked' | 'expired' }
  /** Another refresh is under way, for `remainingMs` at most; `isIndeterminate`: it has ended, and its outcome is not known. */
  | { readonly kind: 'in-exchange'; readonly remainingMs: number; readonly isIndeterminate: boolean };

export interface UsedAnswer extends Roots {
  readonly kind: 'used';
  /** Lifetime of the token in milliseconds; 0: not known. */
  readonly lifetimeMs: number;
  /** Milliseconds since it was refreshed. */
  readonly usedForMs: number;
  /** The sealed response of its refresh, while the leeway lasts. */
  readonly sealed: string | null;
}

/** What a successful refresh tells about its token. */
export interface Use {
  /** Recorded where none is known, as is `family`. */
  readonly owner: SubjectDigest | null;
  readonly family: FamilyId;
  /** The response had a new token, so that the old one is not an invention of the client. */
  readonly isProven: boolean;
  readonly answer: { readonly sealed: string; readonly leewayMs: number } | null;
}

export interface IssuedRecord {
  readonly subject: SubjectDigest | null;
  readonly generation: number;
  readonly family: FamilyId;
  readonly lifetimeMs: number;
}

export type TokenState = 'valid' | 'in-exchange' | 'used' | 'revoked' | 'expired';

/** A token as operators may see it; times are milliseconds since 1970 by the store's clock. */
export interface TokenEntry {
  readonly token: TokenDigest;
  readonly subject: SubjectDigest | null;
  readonly family: FamilyId | null;
  readonly state: TokenState;
  readonly issuedAtMs: number;
  readonly expiresAtMs: number;
  readonly usedAtMs: number | null;
  /** Also null where it was revoked by `mine`, or with its family. */
  readonly revokedAtMs: number | null;
}

/** The generation of the token's subject, and whether the token was ended by `mine` or with its family. */
export async function standingOf(
  store: Pick<TokenStore, 'generationOf' | 'isFamilyEnded'>,
  { subject, generation, family }: Roots,
): Promise<{ readonly since: number; readonly isOver: boolean }> {
  const [since, isEnded] = await Promise.all([
    subject === null ? 0 : store.generationOf(subject),
    family === null ? false : store.isFamilyEnded(family),
  ]);
  return { since, isOver: isEnded || generation < since };
}

/** Options of both stores. */
export interface TokenStoreOptions {
  /** Milliseconds that a token lives whose issue shopward has not seen, from its refresh on. */
  readonly lifetimeMs: number;
  /** Milliseconds that a record is kept after the token's expiry; `keep`: for ever. */
  readonly retentionMs: number | 'keep';
  /** Limits of the book, in a day. Default: as in docs/decisions/refresh-token-states.md. */
  readonly book?: BookLimits;
}

/**
 * The book counts the strays: records of unknown tokens, which were not seen issued. Clients can invent as many of these as they
 * like, so their number is bounded, for each subject and in all.
 */
export interface BookLimits {
  readonly perSubject: number;
  readonly inAll: number;
}

/** Milliseconds that a stray lives, and that a page of the book lasts: a day, or the lifetime of tokens if that is shorter. */
export function strayMs(lifetimeMs: number): number {
  return Math.min(lifetimeMs, 86_400_000);
}
