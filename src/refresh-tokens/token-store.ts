import { andThen, type Eventually } from '../lib/eventually.ts';
import { RedisUnavailable } from '../redis/faults.ts';
import { NoteLimit, noteMs } from './note-limit.ts';
import * as protocol from './protocol.ts';
import {
  families,
  type Kind,
  type NextRecord,
  type Records,
  type Seen,
  type Step,
  subjects,
  type TokenRecord,
  tokens,
} from './protocol.ts';
import {
  type ClaimAnswer,
  type FamilyId,
  type GenerationAt,
  type IssuedRecord,
  lifeOf,
  longestWaitMs,
  type NoteAnswer,
  type SubjectDigest,
  type TokenDigest,
  type TokenEntry,
  type Use,
  type UsedAnswer,
} from './token-values.ts';

/** Options of both stores. */
export interface TokenStoreOptions {
  /** Lifetime in milliseconds, from its refresh on, of a token that shopward did not see issued. */
  readonly lifetimeMs: number;
  /** Milliseconds that a record is kept after the token's expiry; `keep`: for ever. */
  readonly retentionMs: number | 'keep';
  /** Bounds notes about unknown tokens. Only tests set it. */
  readonly noteLimit?: NoteLimit;
  /** The steps of the protocol. Tests pass broken ones. */
  readonly steps?: TokenSteps;
}

/** Exported for its tests. */
export type TokenSteps = typeof protocol;

/** Attempts to replace a record that others change at the same time. */
const maxAttempts = 50;

/**
 * The states of refresh tokens, for all replicas that share the records. Each method is one atomic step of `protocol.ts`: it is
 * computed from the record as it was read, and written only if the record is still the same. Rejects with `RedisUnavailable`
 * only; a write without a reply may have taken effect.
 */
export class TokenStore {
  readonly #records: Records;
  readonly #steps: TokenSteps;
  readonly #lifetimeMs: number;
  readonly #retentionMs: number;
  readonly #noteLimit: NoteLimit;

  constructor(records: Records, { lifetimeMs, retentionMs, noteLimit, steps }: TokenStoreOptions) {
    this.#records = records;
    this.#steps = steps ?? protocol;
    this.#lifetimeMs = lifetimeMs;
    this.#retentionMs = retentionMs === 'keep' ? Number.POSITIVE_INFINITY : retentionMs;
    this.#noteLimit = noteLimit ?? new NoteLimit();
  }

  /**
   * Claims the token for `claimMs`, before a refresh is forwarded. A claim without a reply must not be repeated: release it, and
   * begin again with another `op`.
   */
  claim(token: TokenDigest, op: string, claimMs: number, mostWaitMs?: number): Eventually<ClaimAnswer> {
    const claimed = this.#onToken(
      token,
      (record, now) => this.#steps.claim(record, op, claimMs, now, mostWaitMs),
      true,
    );
    return andThen(claimed, (answer) => (answer.kind === 'used' ? this.#withAnswer(token, answer) : answer));
  }

  /** Ends the claim: the refresh did not happen. No effect if the claim is not `op`'s any more. */
  release(token: TokenDigest, op: string): Eventually<void> {
    return this.#onToken(token, (record) => done(this.#steps.release(record, op)));
  }

  /** The outcome of the refresh is not known: its claim stays for `restMs` at most, and is reported as indeterminate. */
  markIndeterminate(token: TokenDigest, op: string, restMs: number): Eventually<void> {
    return this.#onToken(token, (record, now) =>
      done(this.#steps.markIndeterminate(record, op, restMs, now)),
    );
  }

  /** The shop has refreshed the token. May be repeated. Returns its family, which may have been recorded only after the claim. */
  markUsed(token: TokenDigest, use: Use): Eventually<FamilyId> {
    const mark = () =>
      this.#onToken(token, (record, now) => this.#steps.markUsed(record, use, this.#lifetimeMs, now), true);
    if (use.answer === null) return mark();
    const { sealed, leewayMs } = use.answer;
    // The answer is stored first, since it is given only for a used token.
    const keptMs = leewayMs + longestWaitMs + protocol.lateMs;
    return andThen(this.#records.keepAnswer(token, `${leewayMs}:${sealed}`, keptMs), mark);
  }

  /** The shop has issued the token. One that was refreshed or revoked stays so. */
  record(token: TokenDigest, issued: IssuedRecord): Eventually<void> {
    return this.#onToken(token, (record, now) => done(this.#steps.recordIssued(record, issued, now)));
  }

  /** The values from which the generation of a token of this subject is computed. The token lives for `lifetimeMs`. */
  generationFor(subject: SubjectDigest, lifetimeMs: number): Eventually<GenerationAt> {
    return this.#update(subjects, subject, (record, now, nowMicros) => {
      // A record that has no end need not be written.
      const isKept = this.#retentionMs === Number.POSITIVE_INFINITY || record.untilMs >= now + lifetimeMs;
      return {
        record: isKept ? record : { ...record, untilMs: now + lifetimeMs },
        answer: { generation: this.#steps.generationIn(record), nowMicros },
      };
    });
  }

  /** The subject's generation; tokens of a lower one were revoked by `mine`. */
  generationOf(subject: SubjectDigest): Eventually<number> {
    return this.#update(subjects, subject, (record) => ({
      record,
      answer: this.#steps.generationIn(record),
    }));
  }

  /** Ends every token of the family, and those that are recorded later. May be repeated. */
  endFamily(family: FamilyId, lifetimeMs: number): Eventually<void> {
    const longestMs = Math.max(lifetimeMs, this.#lifetimeMs);
    return this.#update(families, family, (record, now) =>
      done({ untilMs: Math.max(record.untilMs, now + longestMs) }),
    );
  }

  isFamilyEnded(family: FamilyId): Eventually<boolean> {
    return this.#update(families, family, (record) => ({ record, answer: record.untilMs > 0 }));
  }

  /**
   * Notes a revocation, pending until it is final. `foreign`: the token is another subject's, and `by` is not the `bearer`;
   * `full`: the token is unknown, and there are too many notes about such tokens. In both cases nothing is noted.
   */
  noteRevocation(token: TokenDigest, by: SubjectDigest, op: string): Eventually<NoteAnswer> {
    const note = (isAdmitted: boolean) =>
      this.#onToken(token, (record, now) => this.#steps.noteRevocation(record, by, op, isAdmitted, now));
    return andThen(note(false), (answer) =>
      answer === 'full' && this.#noteLimit.admit(by) ? note(true) : answer,
    );
  }

  isRevoked(token: TokenDigest): Eventually<boolean> {
    return this.#onToken(token, (record) => ({ record, answer: this.#steps.revokedAt(record) !== null }));
  }

  /** Makes a pending note final (`stands`), or takes it back. May be repeated. */
  concludeRevocation(token: TokenDigest, by: SubjectDigest, op: string, stands: boolean): Eventually<void> {
    return this.#onToken(token, (record, now) =>
      done(this.#steps.concludeRevocation(record, by, op, stands, now)),
    );
  }

  /** Notes a revocation of all (`mine`). Returns its generation, for `concludeRevocationOfAll`, which may be repeated. */
  noteRevocationOfAll(subject: SubjectDigest, op: string): Eventually<number> {
    return this.#update(subjects, subject, (record, now, nowMicros) =>
      this.#steps.noteAll(record, op, now + this.#lifetimeMs, nowMicros),
    );
  }

  concludeRevocationOfAll(
    subject: SubjectDigest,
    op: string,
    noted: number,
    stands: boolean,
  ): Eventually<void> {
    return this.#update(subjects, subject, (record, now) =>
      done(this.#steps.concludeAll(record, op, noted, stands, now + this.#lifetimeMs)),
    );
  }

  /** All known tokens, or a subject's, in no order. */
  async *list(subject?: SubjectDigest): AsyncIterable<TokenEntry> {
    const remembered = {
      generationOf: remember((owner: SubjectDigest) => this.generationOf(owner)),
      isFamilyEnded: remember((family: FamilyId) => this.isFamilyEnded(family)),
    };
    for await (const { nowMicros, tokens: found } of this.#records.known()) {
      for (const { token, text } of found) {
        const record = decode(tokens, text);
        if (record.life === null || (subject !== undefined && record.subject !== subject)) continue;
        const state = this.#steps.stateOf(record, Math.floor(nowMicros / 1000));
        const { isOver } = await lifeOf(remembered, record);
        yield {
          token,
          subject: record.subject,
          family: record.family,
          state: isOver && state !== 'used' ? 'revoked' : state,
          ...record.life,
          usedAtMs: record.usedAtMs,
          revokedAtMs: protocol.revokedAt(record),
        };
      }
    }
  }

  /** Deletes expired tokens, whatever the retention. Resolves to how many. */
  async purgeExpired(subject?: SubjectDigest): Promise<number> {
    let purged = 0;
    const purge = (record: TokenRecord, now: number) => {
      const isOther = subject !== undefined && record.subject !== subject;
      const isKept = isOther || record.life === null || record.life.expiresAtMs > now;
      return { record: isKept ? record : protocol.blankRecord, answer: isKept ? 0 : 1 };
    };
    for await (const { tokens: found } of this.#records.known(Date.now() + clockSlackMs)) {
      for (const { token } of found) purged += await this.#onToken(token, purge);
    }
    return purged;
  }

  #withAnswer(token: TokenDigest, used: UsedAnswer): Eventually<UsedAnswer> {
    return andThen(this.#records.answerOf(token), (text) => {
      const [, leewayMs = 0, sealed = ''] = /^(\d+):(.*)$/.exec(text ?? '') ?? [];
      return used.isAwaited || used.usedForMs < Number(leewayMs) ? { ...used, sealed: sealed || null } : used;
    });
  }

  #onToken<A>(
    token: TokenDigest,
    step: (record: TokenRecord, now: number) => Step<TokenRecord, A>,
    isConfirmed = false,
  ): Eventually<A> {
    return this.#update(tokens, token, step, isConfirmed);
  }

  /** Reads, computes, and replaces the record; tries again if it has changed meanwhile. */
  #update<R, A>(
    kind: Kind<R>,
    id: string,
    step: (record: R, now: number, nowMicros: number) => Step<R, A>,
    isConfirmed = false,
  ): Eventually<A> {
    const attempt = ({ text, nowMicros }: Seen, left: number): Eventually<A> => {
      const now = Math.floor(nowMicros / 1000);
      const found = decode(kind, text);
      const before = this.#endOf(kind, found) <= now ? kind.blank : found;
      const { record, answer } = step(before, now, nowMicros);
      if (record === before) return answer;
      if (left === 0) throw new RedisUnavailable('busy');
      const replaced = this.#records.replace(kind.name, id, text, this.#next(kind, record, now), isConfirmed);
      return andThen(replaced, (seen) => (seen === 'replaced' ? answer : attempt(seen, left - 1)));
    };
    return andThen(this.#records.read(kind.name, id), (seen) => attempt(seen, maxAttempts));
  }

  #next<R>(kind: Kind<R>, record: R, now: number): NextRecord {
    const life = (record as Partial<TokenRecord>).life;
    return {
      text: kind.encode(record),
      keptMs: Math.max(1, this.#endOf(kind, record) - now),
      expiresAtMs: life?.expiresAtMs,
    };
  }

  #endOf<R>(kind: Kind<R>, record: R): number {
    return kind.endOf(record, this.#retentionMs, Math.min(this.#lifetimeMs, noteMs));
  }
}

function done<R>(record: R): Step<R, void> {
  return { record, answer: undefined };
}

function decode<R>(kind: Kind<R>, text: string): R {
  if (text === '') return kind.blank;
  try {
    return kind.decode(text);
  } catch (fault) {
    throw new RedisUnavailable('error', fault);
  }
}

/** The step decides by the store's clock; this slack only limits which records it looks at. */
const clockSlackMs = 60_000;

function remember<Key, Value>(ask: (key: Key) => Value): (key: Key) => Value {
  const known = new Map<Key, Value>();
  return (key) => {
    const value = known.has(key) ? (known.get(key) as Value) : ask(key);
    known.set(key, value);
    return value;
  };
}
