import type { Eventually } from '../lib/eventually.ts';

/** The generation of the token's subject, and whether the token was ended by `mine` or with its family. */
export async function lifeOf(
  store: {
    generationOf(subject: SubjectDigest): Eventually<number>;
    isFamilyEnded(family: FamilyId): Eventually<boolean>;
  },
  { subject, generation, family }: Roots,
): Promise<{ readonly since: number; readonly isOver: boolean }> {
  const [since, isEnded] = await Promise.all([
    subject === null ? 0 : store.generationOf(subject),
    family === null ? false : store.isFamilyEnded(family),
  ]);
  return { since, isOver: isEnded || generation < since };
}

/** Base64url, keyed: a client can neither read a token from it nor choose it. */
export type TokenDigest = string & { readonly tokenDigest: true };
export type SubjectDigest = string & { readonly subjectDigest: true };

/** Stands for a subject: any client that has a refresh token may revoke it. It is not the digest of any name. */
export const bearer = '_'.repeat(22) as SubjectDigest;

/** Random name of all tokens that descend from one login. */
export type FamilyId = string & { readonly familyId: true };

/** A subject's generation, and the store's clock at that moment. */
export interface GenerationAt {
  readonly generation: number;
  /** Microseconds since 1970. */
  readonly nowMicros: number;
}

export type NoteAnswer = 'noted' | 'foreign' | 'full';

/** What can end a token together with others: its subject's `mine`, the end of its family. */
interface Roots {
  readonly subject: SubjectDigest | null;
  readonly generation: number;
  readonly family: FamilyId | null;
}

export type ClaimAnswer =
  | (Roots & {
      readonly kind: 'granted';
      /** Milliseconds from its last issue to its expiry; 0: it was neither issued nor refreshed through shopward. */
      readonly lifetimeMs: number;
      /** Who has revoked it, while its owner is not known. */
      readonly revokedBy: readonly SubjectDigest[];
    })
  | UsedAnswer
  | { readonly kind: 'revoked' | 'expired' }
  /** Another refresh is under way; `isIndeterminate`: it has ended, and its outcome is not known. Ask again after `waitMs`. */
  | { readonly kind: 'in-exchange'; readonly waitMs: number; readonly isIndeterminate: boolean };

/** The longest Retry-After while another refresh is under way, in milliseconds; a leeway that is shorter bounds it, too. */
export const longestWaitMs = 5000;

export interface UsedAnswer extends Roots {
  readonly kind: 'used';
  /** Lifetime of the token in milliseconds; 0: not known. */
  readonly lifetimeMs: number;
  /** Milliseconds since it was refreshed. */
  readonly usedForMs: number;
  /** A client that was told to wait for that refresh may ask at this time. */
  readonly isAwaited: boolean;
  /** The sealed response of its refresh, while the leeway lasts. */
  readonly sealed: string | null;
}

/** What a successful refresh tells about its token. */
export interface Use {
  /** Like `family`, recorded only if none is known. */
  readonly owner: SubjectDigest | null;
  readonly family: FamilyId;
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
