import type { Eventually } from '../lib/eventually.ts';
import {
  bearer,
  type ClaimAnswer,
  type FamilyId,
  type IssuedRecord,
  longestWaitMs,
  type NoteAnswer,
  type SubjectDigest,
  type TokenDigest,
  type TokenState,
  type Use,
} from './token-values.ts';

/**
 * The state machine of docs/decisions/refresh-token-states.md: pure steps on one record. A step that changes nothing returns
 * the record that it got. Times are milliseconds of the store's clock.
 */
export interface TokenRecord {
  readonly subject: SubjectDigest | null;
  readonly generation: number;
  readonly family: FamilyId | null;
  /** Null for an unknown token, which shopward did not see issued. */
  readonly life: { readonly issuedAtMs: number; readonly expiresAtMs: number } | null;
  readonly usedAtMs: number | null;
  /** Until then clients that were told to wait for the refresh may ask again. 0: there are none. */
  readonly awaitedUntilMs: number;
  readonly claim: { readonly op: string; readonly untilMs: number; readonly isIndeterminate: boolean } | null;
  readonly notes: readonly Note[];
}

/** A revocation. */
interface Note {
  readonly by: SubjectDigest;
  readonly atMs: number;
  /** The operation that may take it back; null: it is final. */
  readonly op: string | null;
}

/** A user's generation: the final one, and that of each `mine` under way. */
interface SubjectRecord {
  readonly settled: number;
  readonly pending: Readonly<Record<string, number>>;
  /** When the last token of the user expires. */
  readonly untilMs: number;
}

/** An ended family, and when its last token expires. */
interface FamilyRecord {
  readonly untilMs: number;
}

export interface Step<R, A> {
  readonly record: R;
  readonly answer: A;
}

export const blankRecord: TokenRecord = {
  subject: null,
  generation: 0,
  family: null,
  life: null,
  usedAtMs: null,
  awaitedUntilMs: 0,
  claim: null,
  notes: [],
};
/** Exported for its tests. */
export const blankSubject: SubjectRecord = { settled: 0, pending: {}, untilMs: 0 };
const blankFamily: FamilyRecord = { untilMs: 0 };

/** Milliseconds of delay allowed to a client after its Retry-After. */
export const lateMs = 2000;

/** `mostWaitMs`: the longest Retry-After while another refresh is under way. */
export function claim(
  record: TokenRecord,
  op: string,
  claimMs: number,
  now: number,
  mostWaitMs = longestWaitMs,
): Step<TokenRecord, ClaimAnswer> {
  const { subject, generation, family, life } = record;
  const lifetimeMs = life === null ? 0 : life.expiresAtMs - life.issuedAtMs;
  const known = { subject, generation, family, lifetimeMs };
  const state = stateOf(record, now);
  switch (state) {
    case 'used': {
      const usedForMs = now - (record.usedAtMs ?? now);
      const isAwaited = now < record.awaitedUntilMs;
      return { record, answer: { kind: state, ...known, usedForMs, isAwaited, sealed: null } };
    }
    case 'in-exchange': {
      const { untilMs, isIndeterminate } = record.claim ?? { untilMs: now, isIndeterminate: false };
      const restMs = untilMs - now;
      if (isIndeterminate) return { record, answer: { kind: state, waitMs: restMs, isIndeterminate } };
      // Retry-After is the duration of the refresh so far, so that clients poll rarely.
      const waitMs = Math.max(1000, Math.min(restMs, claimMs - restMs, mostWaitMs));
      const awaitedUntilMs = now + waitMs + lateMs;
      // A client that ignores Retry-After does not cause a write with every request.
      const isNews = awaitedUntilMs >= record.awaitedUntilMs + lateMs / 4;
      const answer = { kind: state, waitMs, isIndeterminate };
      return { record: isNews ? { ...record, awaitedUntilMs } : record, answer };
    }
    case 'valid': {
      const revokedBy = subject === null ? [...new Set(record.notes.map(({ by }) => by))] : [];
      return {
        record: { ...record, claim: { op, untilMs: now + claimMs, isIndeterminate: false } },
        answer: { kind: 'granted', ...known, revokedBy },
      };
    }
    default:
      return { record, answer: { kind: state } };
  }
}

export function release(record: TokenRecord, op: string): TokenRecord {
  return record.claim?.op === op ? { ...record, claim: null } : record;
}

/** Limits the claim to `restMs`, during which the shop may still work on the refresh. */
export function markIndeterminate(record: TokenRecord, op: string, restMs: number, now: number): TokenRecord {
  if (record.claim?.op !== op) return record;
  const untilMs = Math.min(record.claim.untilMs, now + restMs);
  return { ...record, claim: { op, untilMs, isIndeterminate: true } };
}

/** Always returns a new record, so that a repeated call writes it, and has replicas confirm it, again. */
export function markUsed(
  record: TokenRecord,
  { owner, family }: Use,
  lifetimeMs: number,
  now: number,
): Step<TokenRecord, FamilyId> {
  const own = record.family ?? family;
  const marked = {
    ...record,
    subject: record.subject ?? owner,
    family: own,
    life: record.life ?? { issuedAtMs: now, expiresAtMs: now + lifetimeMs },
    usedAtMs: record.usedAtMs ?? now,
    claim: null,
  };
  return { record: marked, answer: own };
}

export function recordIssued(record: TokenRecord, issued: IssuedRecord, now: number): TokenRecord {
  const { subject, generation, family, lifetimeMs } = issued;
  if (record.usedAtMs !== null) return record;
  const life = { issuedAtMs: now, expiresAtMs: Math.max(now + lifetimeMs, record.life?.expiresAtMs ?? 0) };
  // A shop may issue the same token again: it lives longer, and a revoked one stays revoked.
  if (record.life !== null) return { ...record, life };
  return { ...record, subject: record.subject ?? subject, generation, family, life };
}

/** `full`: the token is unknown, `by` has no final note on it, and a new one is not admitted. */
export function noteRevocation(
  record: TokenRecord,
  by: SubjectDigest,
  op: string,
  isAdmitted: boolean,
  now: number,
): Step<TokenRecord, NoteAnswer> {
  const isForeign = record.subject !== null && record.subject !== by && by !== bearer;
  if (isForeign) return { record, answer: 'foreign' };
  const isNoted = record.notes.some((note) => note.by === by && note.op === null);
  if (record.life === null && !isNoted && !isAdmitted) return { record, answer: 'full' };
  return { record: { ...record, notes: [...record.notes, { by, op, atMs: now }] }, answer: 'noted' };
}

export function concludeRevocation(
  record: TokenRecord,
  by: SubjectDigest,
  op: string,
  stands: boolean,
  now: number,
): TokenRecord {
  const atMs = record.notes.find((note) => note.op === op)?.atMs ?? now;
  const others = record.notes.filter((note) => note.op !== op);
  const isConcluded = others.some((note) => note.by === by && note.op === null);
  const notes = stands && !isConcluded ? [...others, { by, atMs, op: null }] : others;
  return { ...record, notes };
}

/** Begins a `mine`. Its generation is higher than all earlier ones, and than those of a record that was lost. */
export function noteAll(
  record: SubjectRecord,
  op: string,
  untilMs: number,
  micros: number,
): Step<SubjectRecord, number> {
  const noted = Math.max(generationIn(record) + 1, micros);
  const pending = { ...record.pending, [op]: noted };
  return { record: { ...record, pending, untilMs: Math.max(record.untilMs, untilMs) }, answer: noted };
}

export function concludeAll(
  record: SubjectRecord,
  op: string,
  noted: number,
  stands: boolean,
  untilMs: number,
): SubjectRecord {
  const { [op]: _, ...pending } = record.pending;
  const settled = stands ? Math.max(record.settled, noted) : record.settled;
  return { settled, pending, untilMs: Math.max(record.untilMs, untilMs) };
}

export function generationIn({ settled, pending }: SubjectRecord): number {
  return Object.values(pending).reduce((latest, noted) => Math.max(latest, noted), settled);
}

/** The state by the record alone: the generation of its subject and the end of its family are in other records. */
export function stateOf(record: TokenRecord, now: number): TokenState {
  if (record.usedAtMs !== null) return 'used';
  if (revokedAt(record) !== null) return 'revoked';
  if (record.life !== null && record.life.expiresAtMs <= now) return 'expired';
  return record.claim !== null && record.claim.untilMs > now ? 'in-exchange' : 'valid';
}

/** When the token was revoked, by its own subject or by a client that has shown it; null: it is not. */
export function revokedAt({ subject, notes }: TokenRecord): number | null {
  let first: number | null = null;
  for (const { by, atMs } of notes)
    if ((by === subject || by === bearer) && (first === null || atMs < first)) first = atMs;
  return first;
}

/** A store reads texts, and replaces one if it has not changed since. Rejects with `RedisUnavailable`. */
export interface Records {
  read(kind: KindName, id: string): Eventually<Seen>;
  /**
   * Replaces the record if it is still `seen`; otherwise returns what is there now. `isConfirmed`: rejects unless enough
   * replicas have it; the write may have taken effect even then.
   */
  replace(
    kind: KindName,
    id: string,
    seen: string,
    next: NextRecord,
    isConfirmed: boolean,
  ): Eventually<Seen | 'replaced'>;
  /** Known tokens in chunks, all or those that expire by `untilMs`. */
  known(untilMs?: number): AsyncIterable<KnownTokens>;
  /** Keeps the sealed response of a refresh for `forMs`. */
  keepAnswer(token: TokenDigest, text: string, forMs: number): Eventually<unknown>;
  answerOf(token: TokenDigest): Eventually<string | null>;
}

/** A record as it was read (empty if it is missing) and the time of the store's clock at that moment. */
export interface Seen {
  readonly text: string;
  /** Microseconds since 1970. */
  readonly nowMicros: number;
}

export interface KnownTokens {
  readonly nowMicros: number;
  readonly tokens: readonly { readonly token: TokenDigest; readonly text: string }[];
}

export interface NextRecord {
  /** Empty: the record is deleted. */
  readonly text: string;
  /** Milliseconds that it is kept; `Infinity`: for ever. */
  readonly keptMs: number;
  /** When the token expires, for a known one. */
  readonly expiresAtMs: number | undefined;
}

export type KindName = 'token' | 'subject' | 'family';

/** How records of one kind become texts. `encode` of a token's record that says nothing is empty. */
export interface Kind<R> {
  readonly name: KindName;
  readonly blank: R;
  /** When the record may be dropped; `Infinity`: never. That of an unknown token lives `orphanMs` after its last note. */
  endOf(record: R, retentionMs: number, orphanMs: number): number;
  encode(record: R): string;
  decode(text: string): R;
}

const json = <R extends { readonly untilMs: number }>(name: KindName, blank: R): Kind<R> => ({
  name,
  blank,
  endOf: ({ untilMs }, retentionMs) => untilMs + retentionMs,
  encode: (record) => JSON.stringify(record),
  decode: (text) => JSON.parse(text),
});

export const subjects = json<SubjectRecord>('subject', blankSubject);
export const families = json<FamilyRecord>('family', blankFamily);

/** There may be millions of these, so names have one letter, and null and 0 are left out. */
export const tokens: Kind<TokenRecord> = {
  name: 'token',
  blank: blankRecord,
  endOf({ life, claim: current, notes }, retentionMs, orphanMs) {
    if (life !== null) return life.expiresAtMs + retentionMs;
    return notes.reduce((last, { atMs }) => Math.max(last, atMs + orphanMs), current?.untilMs ?? 0);
  },
  encode({ subject, generation, family, life, usedAtMs, awaitedUntilMs, claim, notes }) {
    if (life === null && claim === null && notes.length === 0) return '';
    return JSON.stringify({
      s: subject ?? undefined,
      g: generation || undefined,
      f: family ?? undefined,
      i: life?.issuedAtMs,
      e: life?.expiresAtMs,
      u: usedAtMs ?? undefined,
      w: awaitedUntilMs || undefined,
      c: claim ?? undefined,
      n: notes.length === 0 ? undefined : notes,
    });
  },
  decode(text) {
    const { s = null, g = 0, f = null, i, e, u = null, w = 0, c = null, n = [] } = JSON.parse(text);
    const life = e === undefined ? null : { issuedAtMs: i, expiresAtMs: e };
    return { subject: s, generation: g, family: f, life, usedAtMs: u, awaitedUntilMs: w, claim: c, notes: n };
  },
};
