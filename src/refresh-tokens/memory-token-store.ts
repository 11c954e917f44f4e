import * as steps from './token-record.ts';
import { blankRecord, type TokenRecord } from './token-record.ts';
import type {
  SubjectDigest,
  TokenDigest,
  TokenEntry,
  TokenState,
  TokenStore,
  TokenStoreOptions,
} from './token-store.ts';

export interface MemoryTokenStoreOptions extends TokenStoreOptions {
  /** Records that are kept; above, the tenth that expires first goes. Default 100000. */
  readonly maxRecords?: number;
  /** Milliseconds since 1970. Default `Date.now`. */
  readonly now?: () => number;
  /** Told how many records went for want of room. */
  readonly onEvict?: (records: number) => void;
  /** The steps of the protocol; tests pass ones that they have broken. */
  readonly protocol?: TokenSteps;
}

export type TokenSteps = Pick<
  typeof steps,
  'claim' | 'release' | 'markUsed' | 'recordIssued' | 'noteRevocation' | 'settleRevocation' | 'stateOf'
>;

/** Generation of a subject: settled, and that of each `mine` under way. */
interface Generations {
  settled: number;
  readonly pending: Map<string, number>;
}

/** Refresh tokens of one process: nothing survives it. What went for want of room is the shop's to judge again. */
export class MemoryTokenStore implements TokenStore {
  readonly kind = 'memory';
  readonly #options: MemoryTokenStoreOptions;
  readonly #steps: TokenSteps;
  readonly #maxRecords: number;
  readonly #now: () => number;
  readonly #records = new Map<TokenDigest, TokenRecord>();
  readonly #generations = new Map<SubjectDigest, Generations>();

  constructor(options: MemoryTokenStoreOptions) {
    this.#options = options;
    this.#steps = options.protocol ?? steps;
    this.#maxRecords = options.maxRecords ?? 100_000;
    this.#now = options.now ?? Date.now;
  }

  get size(): number {
    return this.#records.size;
  }

  claim(token: TokenDigest, op: string, holdMs: number) {
    const { record, answer } = this.#steps.claim(this.#look(token), op, holdMs, this.#now());
    if (answer.kind === 'granted') this.#store(token, record);
    return answer;
  }

  release(token: TokenDigest, op: string) {
    this.#store(token, this.#steps.release(this.#look(token), op));
  }

  markUsed(token: TokenDigest, owner: SubjectDigest | null) {
    const { lifetimeMs } = this.#options;
    this.#store(token, this.#steps.markUsed(this.#look(token), owner, lifetimeMs, this.#now()));
  }

  record(token: TokenDigest, issued: Parameters<TokenStore['record']>[1]) {
    this.#store(token, this.#steps.recordIssued(this.#look(token), issued, this.#now()));
  }

  addToSubject(subject: SubjectDigest) {
    return this.generationOf(subject);
  }

  generationOf(subject: SubjectDigest) {
    const known = this.#generations.get(subject);
    return known === undefined ? 0 : Math.max(known.settled, ...known.pending.values());
  }

  noteRevocation(token: TokenDigest, by: SubjectDigest, op: string) {
    const { record, answer } = this.#steps.noteRevocation(this.#look(token), by, op, this.#now());
    if (answer === 'noted') this.#store(token, record);
    return answer;
  }

  settleRevocation(token: TokenDigest, by: SubjectDigest, op: string, stands: boolean) {
    this.#store(token, this.#steps.settleRevocation(this.#look(token), by, op, stands, this.#now()));
  }

  noteRevocationOfAll(subject: SubjectDigest, op: string) {
    const next = Math.max(this.generationOf(subject) + 1, this.#now() * 1000);
    const known = this.#generations.get(subject) ?? { settled: 0, pending: new Map() };
    known.pending.set(op, next);
    this.#generations.set(subject, known);
    if (this.#generations.size > this.#maxRecords) this.#forgetIdleSubjects();
  }

  settleRevocationOfAll(subject: SubjectDigest, op: string, stands: boolean) {
    if (stands && this.#generations.get(subject)?.pending.has(op) !== true)
      this.noteRevocationOfAll(subject, op);
    const known = this.#generations.get(subject);
    if (known === undefined) return;
    if (stands) known.settled = Math.max(known.settled, known.pending.get(op) ?? 0);
    known.pending.delete(op);
    if (known.settled === 0 && known.pending.size === 0) this.#generations.delete(subject);
  }

  async *list(subject?: SubjectDigest): AsyncIterable<TokenEntry> {
    for (const [token, record] of [...this.#records]) {
      const { life } = record;
      if (life === null || (subject !== undefined && record.subject !== subject)) continue;
      const { issuedAtMs, expiresAtMs } = life;
      yield {
        token,
        subject: record.subject,
        state: this.#stateOf(record),
        issuedAtMs,
        expiresAtMs,
        usedAtMs: record.usedAtMs,
        revokedAtMs: steps.revokedAt(record),
      };
    }
  }

  async purgeExpired(subject?: SubjectDigest): Promise<number> {
    const now = this.#now();
    let purged = 0;
    for (const [token, { life, subject: owner }] of this.#records) {
      if (life === null || life.expiresAtMs > now || (subject !== undefined && owner !== subject)) continue;
      this.#records.delete(token);
      purged += 1;
    }
    return purged;
  }

  #stateOf(record: TokenRecord): TokenState {
    const state = this.#steps.stateOf(record, this.#now());
    if (state === 'used' || record.subject === null) return state;
    return record.generation < this.generationOf(record.subject) ? 'revoked' : state;
  }

  #look(token: TokenDigest): TokenRecord {
    const record = this.#records.get(token);
    return record === undefined || this.#endOf(record) <= this.#now() ? blankRecord : record;
  }

  #store(token: TokenDigest, record: TokenRecord): void {
    const isNothing =
      record.life === null && record.claim === null && record.notes.size === 0 && record.pending.size === 0;
    if (isNothing) {
      this.#records.delete(token);
      return;
    }
    this.#records.set(token, record);
    if (this.#records.size > this.#maxRecords) this.#evict();
  }

  /** When a record may be forgotten. */
  #endOf({ life, claim, notes, pending }: TokenRecord): number {
    const { retentionMs, lifetimeMs } = this.#options;
    if (life !== null) return retentionMs === 'keep' ? Infinity : life.expiresAtMs + retentionMs;
    const noted = [...notes.values(), ...[...pending.values()].map(({ atMs }) => atMs)];
    return Math.max(claim?.untilMs ?? 0, ...noted.map((atMs) => atMs + lifetimeMs));
  }

  /** The oldest expired ones go first; a tenth at a time, so that sorting is paid for by many insertions. */
  #evict(): void {
    const now = this.#now();
    const rank = (record: TokenRecord) =>
      (record.claim?.untilMs ?? 0) > now ? Infinity : (record.life?.expiresAtMs ?? this.#endOf(record));
    const ends = Float64Array.from(this.#records.values(), rank).sort();
    const surplus = this.#records.size - this.#maxRecords + Math.floor(this.#maxRecords / 10);
    const last = ends[surplus - 1] ?? Infinity;
    let evicted = 0;
    for (const [token, record] of this.#records) {
      if (evicted === surplus) break;
      if (rank(record) > last) continue;
      this.#records.delete(token);
      evicted += 1;
    }
    this.#options.onEvict?.(evicted);
    this.#forgetIdleSubjects();
  }

  /** A generation serves only the tokens that are there. */
  #forgetIdleSubjects(): void {
    const owners = new Set([...this.#records.values()].map(({ subject }) => subject));
    for (const [subject, { pending }] of this.#generations) {
      if (!owners.has(subject) && pending.size === 0) this.#generations.delete(subject);
    }
  }
}
