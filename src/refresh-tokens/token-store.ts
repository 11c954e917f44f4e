import type { Eventually } from '../lib/eventually.ts';
/**
 * The port behind which the states of refresh tokens are kept. Each operation is atomic over every replica that shares
 * the store; docs/decisions/refresh-token-states.md says why each exists. Rejects with `RedisUnavailable` only.
 */
export interface TokenStore {
  readonly kind: 'memory' | 'redis';
  /** Before a refresh is forwarded, and for a moment only. Never repeat one that got no answer: release it, and begin anew. */
  claim(token: TokenDigest, op: string, holdMs: number): Eventually<ClaimAnswer>;
  /** `op`'s claim holds for the whole refresh; anything but `confirmed`: the refresh must not be sent. */
  confirm(token: TokenDigest, op: string, holdMs: number): Eventually<'confirmed' | 'lost'>;
  /** The refresh did not happen. Nothing if the claim is not `op`'s any more. */
  release(token: TokenDigest, op: string): Eventually<void>;
  /** Nobody knows how the refresh has ended: its claim stays until it lapses, and says so. */
  markIndeterminate(token: TokenDigest, op: string): Eventually<void>;
  /**
   * The shop has refreshed it. May be repeated. Gives the family that it has, which may have been recorded since its claim;
   * `full`: nothing is known of it, nothing proves it, and the book is full.
   */
  markUsed(token: TokenDigest, use: Use): Eventually<FamilyId | 'full'>;
  /** The shop has issued it. A token that was refreshed, or revoked, stays so. */
  record(token: TokenDigest, issued: IssuedRecord): Eventually<void>;
  /** Puts the token into the subject's index; gives what the generation for its record is made of. */
  addToSubject(subject: SubjectDigest, token: TokenDigest, lifetimeMs: number): Eventually<Standing>;
  /** A token of a lower generation was revoked with all others of its subject. */
  generationOf(subject: SubjectDigest): Eventually<number>;
  /** Ends every token of the family, those too that are yet to be recorded. May be repeated. */
  endFamily(family: FamilyId, lifetimeMs: number): Eventually<void>;
  isFamilyEnded(family: FamilyId): Eventually<boolean>;
  /** `foreign`: it is another subject's, and `by` is not the `holder`; `full`: it is nobody's, and the book of such is full; nothing was noted. */
  noteRevocation(token: TokenDigest, by: SubjectDigest, op: string): Eventually<NoteAnswer>;
  /** Makes a pending note final, or takes it back. May be repeated. */
  settleRevocation(token: TokenDigest, by: SubjectDigest, op: string, stands: boolean): Eventually<void>;
  /** Gives the generation that it makes, for `settleRevocationOfAll`: that may be repeated, and must not rise each time. */
  noteRevocationOfAll(subject: SubjectDigest, op: string): Eventually<number>;
  settleRevocationOfAll(subject: SubjectDigest, op: string, noted: number, stands: boolean): Eventually<void>;
  /** All tokens, or a subject's, in no order. Those that are known only by a claim or a note are left out. */
  list(subject?: SubjectDigest): AsyncIterable<TokenEntry>;
  /** Deletes what has expired, whatever the retention; gives how many. */
  purgeExpired(subject?: SubjectDigest): Promise<number>;
}

/** Hexadecimal; nothing of a token can be read or chosen in it. */
export type TokenDigest = string & { readonly tokenDigest: true };
export type SubjectDigest = string & { readonly subjectDigest: true };

/** Whoever shows the token itself; notes a revocation whosever it is. No digest of a name is this one. */
export const holder = 'f'.repeat(32) as SubjectDigest;

/** Random; names all tokens that descend from one login. */
export type FamilyId = string & { readonly familyId: true };

/** By the store's clock when a token was issued. */
export interface Standing {
  readonly generation: number;
  /** Microseconds since 1970. */
  readonly nowMicros: number;
}

export type NoteAnswer = 'noted' | 'foreign' | 'full';

/** What ends a token with others: its subject's `mine`, the end of its family. */
export interface Roots {
  readonly subject: SubjectDigest | null;
  readonly generation: number;
  readonly family: FamilyId | null;
}

export type ClaimAnswer =
  | (Roots & {
      readonly kind: 'granted';
      /** It was issued, or refreshed, through shopward. */
      readonly isKnown: boolean;
      /** Who has revoked it, where it is not known whose it is. */
      readonly revokedBy: readonly SubjectDigest[];
    })
  | UsedAnswer
  | { readonly kind: 'revoked' | 'expired' }
  /** Another refresh of it is under way, for so long at most; or it is over, and its outcome is not known. */
  | { readonly kind: 'in-exchange'; readonly remainingMs: number; readonly isIndeterminate: boolean };

export interface UsedAnswer extends Roots {
  readonly kind: 'used';
  /** How long the token was to live; 0: nobody knows. */
  readonly lifetimeMs: number;
  /** Milliseconds since it was refreshed. */
  readonly usedForMs: number;
  /** The answer of its refresh while the leeway lasts. */
  readonly sealed: string | null;
}

/** What is known of a refresh that has succeeded. */
export interface Use {
  /** Filled in where none was known; so is `family`. */
  readonly owner: SubjectDigest | null;
  readonly family: FamilyId;
  /** The answer held a new token: it is not about an invention. */
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

/** A token as ops may see it; times are milliseconds since 1970 by the store's clock. */
export interface TokenEntry {
  readonly token: TokenDigest;
  readonly subject: SubjectDigest | null;
  readonly family: FamilyId | null;
  readonly state: TokenState;
  readonly issuedAtMs: number;
  readonly expiresAtMs: number;
  readonly usedAtMs: number | null;
  /** Null too where it went with all of its subject's, or of its family. */
  readonly revokedAtMs: number | null;
}

/** The generation of the token's subject, and whether the token went with all of its subject's or of its family. */
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

/** What both stores are built from. */
export interface TokenStoreOptions {
  /** Milliseconds: expiry of a token that the shop alone has seen issued. */
  readonly lifetimeMs: number;
  /** Milliseconds that a record outlives its token's expiry; `keep`: for good. */
  readonly retentionMs: number | 'keep';
  /** What the book of records about nothing admits in a day. Default: the table of the protocol page. */
  readonly book?: BookLimits;
}

export interface BookLimits {
  readonly perSubject: number;
  readonly inAll: number;
}

/** Milliseconds that a record about nothing lives, and that a page of the book is kept. */
export function strayMs(lifetimeMs: number): number {
  return Math.min(lifetimeMs, 86_400_000);
}
