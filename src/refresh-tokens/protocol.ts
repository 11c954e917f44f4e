import {
  type BookLimits,
  type ClaimAnswer,
  type FamilyId,
  holder,
  type IssuedRecord,
  type NoteAnswer,
  type SubjectDigest,
  type TokenState,
  type Use,
} from './token-store.ts';

/**
 * The record of a token. Below are the steps of docs/decisions/refresh-token-states.md on one record, pure; `lua.ts` has the
 * same in Lua. Times are milliseconds of the store's clock.
 */
export interface TokenRecord {
  readonly subject: SubjectDigest | null;
  readonly generation: number;
  readonly family: FamilyId | null;
  /** Null for an unknown token, which was not seen issued and has only a claim, a note or a mark: a stray. */
  readonly life: { readonly issuedAtMs: number; readonly expiresAtMs: number } | null;
  readonly usedAtMs: number | null;
  readonly claim: {
    readonly op: string;
    readonly untilMs: number;
    readonly isIndeterminate: boolean;
  } | null;
  /** Settled revocations: by whom -> when. */
  readonly notes: ReadonlyMap<SubjectDigest, number>;
  /** Revocations under way: operation -> by whom, and when. */
  readonly pending: ReadonlyMap<string, { readonly by: SubjectDigest; readonly atMs: number }>;
  readonly answer: { readonly sealed: string; readonly untilMs: number } | null;
}

/** The book of strays: how many were admitted since its page began. It bounds them, since clients can invent tokens. */
export interface Book {
  readonly untilMs: number;
  readonly inAll: number;
  /** Changed in place: copying it for each entry would cost as much as it has entries. */
  readonly bySubject: Map<SubjectDigest, number>;
}

interface Step<T> {
  readonly record: TokenRecord;
  readonly answer: T;
}

export const blankRecord: TokenRecord = {
  subject: null,
  generation: 0,
  family: null,
  life: null,
  usedAtMs: null,
  claim: null,
  notes: new Map(),
  pending: new Map(),
  answer: null,
};

export const blankBook: Book = { untilMs: 0, inAll: 0, bySubject: new Map() };

export function claim(record: TokenRecord, op: string, holdMs: number, now: number): Step<ClaimAnswer> {
  const { subject, generation, family, life, answer: kept } = record;
  const state = stateOf(record, now);
  switch (state) {
    case 'used': {
      const lifetimeMs = life === null ? 0 : life.expiresAtMs - life.issuedAtMs;
      const sealed = kept !== null && kept.untilMs > now ? kept.sealed : null;
      const usedForMs = now - (record.usedAtMs ?? now);
      return { record, answer: { kind: state, subject, generation, family, lifetimeMs, usedForMs, sealed } };
    }
    case 'in-exchange': {
      const { untilMs, isIndeterminate } = record.claim ?? { untilMs: now, isIndeterminate: false };
      return { record, answer: { kind: state, remainingMs: untilMs - now, isIndeterminate } };
    }
    case 'valid': {
      const revokedBy = subject === null ? revokers(record) : [];
      return {
        record: { ...record, claim: { op, untilMs: now + holdMs, isIndeterminate: false } },
        answer: { kind: 'granted', subject, generation, family, isKnown: life !== null, revokedBy },
      };
    }
    default:
      return { record, answer: { kind: state } };
  }
}

/** `lost`: the claim was released, has lapsed, belongs to another operation, or the token was revoked meanwhile. */
export function confirm(
  record: TokenRecord,
  op: string,
  holdMs: number,
  now: number,
): Step<'confirmed' | 'lost'> {
  if (stateOf(record, now) !== 'in-exchange' || record.claim?.op !== op) return { record, answer: 'lost' };
  return { record: { ...record, claim: { ...record.claim, untilMs: now + holdMs } }, answer: 'confirmed' };
}

export function release(record: TokenRecord, op: string): TokenRecord {
  return record.claim?.op === op ? { ...record, claim: null } : record;
}

export function markIndeterminate(record: TokenRecord, op: string): TokenRecord {
  return record.claim?.op === op ? { ...record, claim: { ...record.claim, isIndeterminate: true } } : record;
}

/**
 * An unknown token becomes a known one if its refresh proves it (`isProven`); otherwise it is a stray, and `isAdmitted`
 * decides.
 */
export function markUsed(
  record: TokenRecord,
  use: Use,
  lifetimeMs: number,
  now: number,
  isAdmitted: () => boolean,
): Step<FamilyId | 'full'> {
  const { owner, family, isProven, answer } = use;
  const isKnown = record.life !== null || record.usedAtMs !== null;
  if (!isKnown && !isProven && !isAdmitted()) return { record, answer: 'full' };
  const own = record.family ?? family;
  const marked = {
    ...record,
    subject: record.subject ?? owner,
    family: own,
    life: record.life ?? (isProven ? { issuedAtMs: now, expiresAtMs: now + lifetimeMs } : null),
    usedAtMs: record.usedAtMs ?? now,
    claim: null,
    answer: answer === null ? record.answer : { sealed: answer.sealed, untilMs: now + answer.leewayMs },
  };
  return { record: marked, answer: own };
}

export function recordIssued(record: TokenRecord, issued: IssuedRecord, now: number): TokenRecord {
  const { subject, generation, family, lifetimeMs } = issued;
  if (record.usedAtMs !== null) return record;
  const expiresAtMs = Math.max(now + lifetimeMs, record.life?.expiresAtMs ?? 0);
  // A shop may issue the same token again: it lives longer, and a revoked one stays revoked.
  if (record.life !== null) return { ...record, life: { ...record.life, expiresAtMs } };
  return {
    ...record,
    subject: record.subject ?? subject,
    generation,
    family,
    life: { issuedAtMs: now, expiresAtMs },
  };
}

/** `isAdmitted` is called for the first note of `by` on an unknown token. */
export function noteRevocation(
  record: TokenRecord,
  by: SubjectDigest,
  op: string,
  now: number,
  isAdmitted: () => boolean,
): Step<NoteAnswer> {
  const isForeign = record.subject !== null && record.subject !== by && by !== holder;
  if (isForeign) return { record, answer: 'foreign' };
  if (record.life === null && !record.notes.has(by) && !isAdmitted()) return { record, answer: 'full' };
  const pending = new Map(record.pending).set(op, { by, atMs: now });
  return { record: { ...record, pending }, answer: 'noted' };
}

export function settleRevocation(
  record: TokenRecord,
  by: SubjectDigest,
  op: string,
  stands: boolean,
  now: number,
): TokenRecord {
  const pending = new Map(record.pending);
  const atMs = pending.get(op)?.atMs ?? now;
  pending.delete(op);
  if (!stands) return { ...record, pending };
  const notes = record.notes.has(by) ? record.notes : new Map(record.notes).set(by, atMs);
  return { ...record, pending, notes };
}

/**
 * Admits one more stray of `who` (null: of a refresh) into the book, if there is room. A page ends `pageMs` after its
 * first entry.
 */
export function admit(
  book: Book,
  who: SubjectDigest | null,
  { perSubject, inAll }: BookLimits,
  pageMs: number,
  now: number,
): { readonly book: Book; readonly isAdmitted: boolean } {
  const page =
    book.untilMs > now
      ? book
      : { untilMs: now + pageMs, inAll: 0, bySubject: new Map<SubjectDigest, number>() };
  const own = who === null ? 0 : (page.bySubject.get(who) ?? 0);
  if (page.inAll >= inAll || own >= perSubject) return { book: page, isAdmitted: false };
  if (who !== null) page.bySubject.set(who, own + 1);
  return { book: { ...page, inAll: page.inAll + 1 }, isAdmitted: true };
}

/** The state by the record alone: the generation of its subject and the end of its family are kept elsewhere. */
export function stateOf(record: TokenRecord, now: number): TokenState {
  if (record.usedAtMs !== null) return 'used';
  if (revokedAt(record) !== null) return 'revoked';
  if (record.life !== null && record.life.expiresAtMs <= now) return 'expired';
  return record.claim !== null && record.claim.untilMs > now ? 'in-exchange' : 'valid';
}

/** When the token was revoked, by its own subject or by a holder who has shown it; null: it is not. */
export function revokedAt({ subject, notes, pending }: TokenRecord): number | null {
  const counts = (by: SubjectDigest) => by === subject || by === holder;
  let earliest = Number.POSITIVE_INFINITY;
  for (const { by, atMs } of pending.values()) if (counts(by)) earliest = Math.min(earliest, atMs);
  for (const [by, atMs] of notes) if (counts(by)) earliest = Math.min(earliest, atMs);
  return earliest === Number.POSITIVE_INFINITY ? null : earliest;
}

function revokers({ notes, pending }: TokenRecord): readonly SubjectDigest[] {
  return [...new Set([...notes.keys(), ...[...pending.values()].map(({ by }) => by)])];
}
