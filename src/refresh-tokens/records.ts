import type { Eventually } from '../lib/eventually.ts';
import {
  type Book,
  blankBook,
  blankFamily,
  blankRecord,
  blankSubject,
  type FamilyRecord,
  type SubjectRecord,
  type TokenRecord,
} from './protocol.ts';
import type { TokenDigest } from './token-values.ts';

/** A store reads texts, and replaces one if it has not changed since. Rejects with `RedisUnavailable`. */
export interface Records {
  read(kind: KindName, id: string): Eventually<Seen>;
  /**
   * Replaces the record if it is still `seen`; otherwise returns what is there now. `isConfirmed`: rejects unless as many
   * replicas have it as are asked for; the write may stand all the same.
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

export type KindName = 'token' | 'subject' | 'family' | 'book';

/** How records of one kind become texts. `encode` of a record that says nothing is empty. */
export interface Kind<R> {
  readonly name: KindName;
  readonly blank: R;
  encode(record: R): string;
  decode(text: string): R;
}

const json = <R>(name: KindName, blank: R): Kind<R> => ({
  name,
  blank,
  encode: (record) => JSON.stringify(record),
  decode: (text) => JSON.parse(text),
});

export const subjects = json<SubjectRecord>('subject', blankSubject);
export const families = json<FamilyRecord>('family', blankFamily);
export const books = json<Book>('book', blankBook);

/** There may be millions of these: names of one letter, and nothing that is null or 0. */
export const tokens: Kind<TokenRecord> = {
  name: 'token',
  blank: blankRecord,
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
