import type { ClaimAnswer, IssuedRecord, SubjectDigest, TokenState } from './token-store.ts';

/**
 * The steps of docs/decisions/refresh-token-states.md on one record, pure. Times are milliseconds of the store's clock.
 * `token-scripts.ts` says the same in Lua.
 */
export interface TokenRecord {
  readonly subject: SubjectDigest | null;
  readonly generation: number;
  /** Null while only a claim or a note is held for a token that nobody saw issued. */
  readonly life: { readonly issuedAtMs: number; readonly expiresAtMs: number } | null;
  readonly usedAtMs: number | null;
  readonly claim: { readonly op: string; readonly untilMs: number } | null;
  /** Settled revocations: who -> when. */
  readonly notes: ReadonlyMap<SubjectDigest, number>;
  /** Revocations under way: operation -> who and when. */
  readonly pending: ReadonlyMap<string, { readonly by: SubjectDigest; readonly atMs: number }>;
}

export interface Step<T> {
  readonly record: TokenRecord;
  readonly answer: T;
}

export const blankRecord: TokenRecord = {
  subject: null,
  generation: 0,
  life: null,
  usedAtMs: null,
  claim: null,
  notes: new Map(),
  pending: new Map(),
};

export function claim(record: TokenRecord, op: string, holdMs: number, now: number): Step<ClaimAnswer> {
  const state = stateOf(record, now);
  if (state === 'in-exchange') {
    return { record, answer: { kind: state, remainingMs: (record.claim?.untilMs ?? now) - now } };
  }
  if (state !== 'valid') return { record, answer: { kind: state } };
  const { subject, generation } = record;
  const revokedBy = subject === null ? revokers(record) : [];
  return {
    record: { ...record, claim: { op, untilMs: now + holdMs } },
    answer: { kind: 'granted', subject, generation, revokedBy },
  };
}

export function release(record: TokenRecord, op: string): TokenRecord {
  return record.claim?.op === op ? { ...record, claim: null } : record;
}

export function markUsed(
  record: TokenRecord,
  owner: SubjectDigest | null,
  lifetimeMs: number,
  now: number,
): TokenRecord {
  return {
    ...record,
    subject: record.subject ?? owner,
    life: record.life ?? { issuedAtMs: now, expiresAtMs: now + lifetimeMs },
    usedAtMs: record.usedAtMs ?? now,
    claim: null,
  };
}

export function recordIssued(record: TokenRecord, issued: IssuedRecord, now: number): TokenRecord {
  const { subject, generation, lifetimeMs } = issued;
  if (record.usedAtMs !== null) return record;
  const expiresAtMs = Math.max(now + lifetimeMs, record.life?.expiresAtMs ?? 0);
  // A shop may give one and the same token again: it lives longer, and what was revoked stays revoked.
  if (record.life !== null) return { ...record, life: { ...record.life, expiresAtMs } };
  return {
    ...record,
    subject: record.subject ?? subject,
    generation,
    life: { issuedAtMs: now, expiresAtMs },
  };
}

export function noteRevocation(
  record: TokenRecord,
  by: SubjectDigest,
  op: string,
  now: number,
): Step<'noted' | 'foreign'> {
  if (record.subject !== null && record.subject !== by) return { record, answer: 'foreign' };
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

/** Without the generation of its subject, which stands elsewhere. */
export function stateOf(record: TokenRecord, now: number): TokenState {
  if (record.usedAtMs !== null) return 'used';
  if (revokedAt(record) !== null) return 'revoked';
  if (record.life !== null && record.life.expiresAtMs <= now) return 'expired';
  return record.claim !== null && record.claim.untilMs > now ? 'in-exchange' : 'valid';
}

/** Only a note of the token's own subject revokes it. */
export function revokedAt({ subject, notes, pending }: TokenRecord): number | null {
  if (subject === null) return null;
  const times = [...pending.values()].filter(({ by }) => by === subject).map(({ atMs }) => atMs);
  const settled = notes.get(subject);
  if (settled !== undefined) times.push(settled);
  return times.length === 0 ? null : Math.min(...times);
}

function revokers({ notes, pending }: TokenRecord): readonly SubjectDigest[] {
  return [...new Set([...notes.keys(), ...[...pending.values()].map(({ by }) => by)])];
}
