import * as steps from './protocol.ts';
import { type Book, blankBook, blankRecord, type TokenRecord } from './protocol.ts';
import type * as port from './token-store.ts';
import { type FamilyId, type SubjectDigest, strayMs, type TokenDigest } from './token-store.ts';

interface MemoryTokenStoreOptions extends port.TokenStoreOptions {
  /** Records of known tokens; beyond it the tenth that expires first is evicted. Default 100000. Only tests set it. */
  readonly maxRecords?: number;
  /** Clock in milliseconds since 1970. Default `Date.now`. */
  readonly now?: () => number;
  /** Called with the number of evicted records. */
  readonly onEvict?: (records: number) => void;
  /** The steps of the protocol. Tests pass broken ones. */
  readonly protocol?: TokenSteps;
}

/** Exported for its tests. */
export type TokenSteps = Pick<
  typeof steps,
  | 'admit'
  | 'claim'
  | 'confirm'
  | 'release'
  | 'markIndeterminate'
  | 'markUsed'
  | 'recordIssued'
  | 'noteRevocation'
  | 'settleRevocation'
  | 'stateOf'
>;

const usualBook: port.BookLimits = { perSubject: 64, inAll: 10_000 };
/** Sealed answers that are kept at most. */
const maxAnswers = 1000;

/** Generations of a subject: the settled one, and that of each `mine` under way. */
interface Generations {
  settled: number;
  readonly pending: Map<string, number>;
}

/** The store of a single process, lost when it ends. The shop alone decides on a token whose record was evicted. */
export class MemoryTokenStore implements port.TokenStore {
  readonly #options: MemoryTokenStoreOptions;
  readonly #steps: TokenSteps;
  readonly #maxRecords: number;
  readonly #now: () => number;
  /** Tokens that were issued or refreshed through this process. */
  readonly #records = new Map<TokenDigest, TokenRecord>();
  /** Claims, notes and marks on unknown tokens, which may not exist: kept apart, so that they never evict a known one. */
  readonly #strays = new Map<TokenDigest, TokenRecord>();
  #straysLookedAtMs = 0;
  #book: Book = blankBook;
  readonly #answers = new Set<TokenDigest>();
  readonly #generations = new Map<SubjectDigest, Generations>();
  readonly #endedFamilies = new Set<FamilyId>();

  constructor(options: MemoryTokenStoreOptions) {
    this.#options = options;
    this.#steps = options.protocol ?? steps;
    this.#maxRecords = options.maxRecords ?? 100_000;
    this.#now = options.now ?? Date.now;
  }

  /** Records of known tokens. */
  get size(): number {
    return this.#records.size;
  }

  get strays(): number {
    return this.#strays.size;
  }

  claim(token: TokenDigest, op: string, holdMs: number) {
    const { record, answer } = this.#steps.claim(this.#look(token), op, holdMs, this.#now());
    if (answer.kind === 'granted') this.#store(token, record);
    return answer;
  }

  confirm(token: TokenDigest, op: string, holdMs: number) {
    const { record, answer } = this.#steps.confirm(this.#look(token), op, holdMs, this.#now());
    if (answer === 'confirmed') this.#store(token, record);
    return answer;
  }

  release(token: TokenDigest, op: string) {
    this.#store(token, this.#steps.release(this.#look(token), op));
  }

  markIndeterminate(token: TokenDigest, op: string) {
    this.#store(token, this.#steps.markIndeterminate(this.#look(token), op));
  }

  markUsed(token: TokenDigest, use: port.Use) {
    const { lifetimeMs } = this.#options;
    const { record, answer } = this.#steps.markUsed(this.#look(token), use, lifetimeMs, this.#now(), () =>
      this.#isAdmitted(null),
    );
    this.#store(token, record);
    if (record.answer !== null) this.#boundAnswers(token);
    return answer;
  }

  record(token: TokenDigest, issued: port.IssuedRecord) {
    this.#store(token, this.#steps.recordIssued(this.#look(token), issued, this.#now()));
  }

  addToSubject(subject: SubjectDigest) {
    return { generation: this.generationOf(subject), nowMicros: this.#now() * 1000 };
  }

  endFamily(family: FamilyId) {
    this.#endedFamilies.add(family);
  }

  isFamilyEnded(family: FamilyId) {
    return this.#endedFamilies.has(family);
  }

  generationOf(subject: SubjectDigest) {
    const known = this.#generations.get(subject);
    if (known === undefined) return 0;
    return known.pending.values().reduce((latest, noted) => Math.max(latest, noted), known.settled);
  }

  noteRevocation(token: TokenDigest, by: SubjectDigest, op: string) {
    const { record, answer } = this.#steps.noteRevocation(this.#look(token), by, op, this.#now(), () =>
      this.#isAdmitted(by),
    );
    if (answer === 'noted') this.#store(token, record);
    return answer;
  }

  settleRevocation(token: TokenDigest, by: SubjectDigest, op: string, stands: boolean) {
    this.#store(token, this.#steps.settleRevocation(this.#look(token), by, op, stands, this.#now()));
  }

  noteRevocationOfAll(subject: SubjectDigest, op: string) {
    const noted = Math.max(this.generationOf(subject) + 1, this.#now() * 1000);
    const known = this.#generations.get(subject) ?? { settled: 0, pending: new Map() };
    known.pending.set(op, noted);
    this.#generations.set(subject, known);
    if (this.#generations.size > this.#maxRecords) this.#forgetIdleSubjects();
    return noted;
  }

  settleRevocationOfAll(subject: SubjectDigest, op: string, noted: number, stands: boolean) {
    const known = this.#generations.get(subject) ?? { settled: 0, pending: new Map() };
    known.pending.delete(op);
    if (stands) known.settled = Math.max(known.settled, noted);
    if (known.settled === 0 && known.pending.size === 0) this.#generations.delete(subject);
    else this.#generations.set(subject, known);
  }

  async *list(subject?: SubjectDigest): AsyncIterable<port.TokenEntry> {
    for (const [token, record] of [...this.#records]) {
      const { life } = record;
      if (life === null || (subject !== undefined && record.subject !== subject)) continue;
      const { issuedAtMs, expiresAtMs } = life;
      yield {
        token,
        subject: record.subject,
        family: record.family,
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

  #stateOf(record: TokenRecord): port.TokenState {
    const { subject, family, generation } = record;
    const state = this.#steps.stateOf(record, this.#now());
    if (state === 'used') return state;
    const isOver =
      (subject !== null && generation < this.generationOf(subject)) ||
      (family !== null && this.isFamilyEnded(family));
    return isOver ? 'revoked' : state;
  }

  #look(token: TokenDigest): TokenRecord {
    const record = this.#records.get(token) ?? this.#strays.get(token);
    return record === undefined || this.#endOf(record) <= this.#now() ? blankRecord : record;
  }

  #store(token: TokenDigest, record: TokenRecord): void {
    const { life, claim, notes, pending, usedAtMs } = record;
    if (life !== null) {
      this.#strays.delete(token);
      this.#records.set(token, record);
      if (this.#records.size > this.#maxRecords) this.#evict();
      return;
    }
    this.#records.delete(token);
    const isNothing = claim === null && notes.size === 0 && pending.size === 0 && usedAtMs === null;
    if (isNothing) this.#strays.delete(token);
    else this.#strays.set(token, record);
    this.#forgetLapsedStrays();
  }

  #isAdmitted(who: SubjectDigest | null): boolean {
    const { lifetimeMs, book: limits = usualBook } = this.#options;
    const { book, isAdmitted } = this.#steps.admit(this.#book, who, limits, strayMs(lifetimeMs), this.#now());
    this.#book = book;
    return isAdmitted;
  }

  /** Once a second at most, since it visits all of them. Their number is bounded by the book and by refreshes under way. */
  #forgetLapsedStrays(): void {
    const now = this.#now();
    if (Math.abs(now - this.#straysLookedAtMs) < 1000) return;
    this.#straysLookedAtMs = now;
    for (const [token, record] of this.#strays) if (this.#endOf(record) <= now) this.#strays.delete(token);
  }

  #boundAnswers(token: TokenDigest): void {
    this.#answers.delete(token);
    this.#answers.add(token);
    const [oldest] = this.#answers;
    if (this.#answers.size <= maxAnswers || oldest === undefined) return;
    this.#answers.delete(oldest);
    const record = this.#records.get(oldest);
    if (record !== undefined) this.#records.set(oldest, { ...record, answer: null });
  }

  /** When a record may be dropped. */
  #endOf({ life, claim, notes, pending, usedAtMs }: TokenRecord): number {
    const { retentionMs, lifetimeMs } = this.#options;
    if (life !== null) return retentionMs === 'keep' ? Infinity : life.expiresAtMs + retentionMs;
    let lastMs = usedAtMs ?? 0;
    for (const atMs of notes.values()) lastMs = Math.max(lastMs, atMs);
    for (const { atMs } of pending.values()) lastMs = Math.max(lastMs, atMs);
    return Math.max(claim?.untilMs ?? 0, lastMs + strayMs(lifetimeMs));
  }

  /** Evicts the records that expire first, but none with a claim; a tenth at a time, so that sorting is rare. */
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

  /** Drops generations and ended families that no record needs. */
  #forgetIdleSubjects(): void {
    const owners = new Set([...this.#records.values()].map(({ subject }) => subject));
    const families = new Set([...this.#records.values()].map(({ family }) => family));
    for (const family of this.#endedFamilies) {
      if (!families.has(family)) this.#endedFamilies.delete(family);
    }
    for (const [subject, { pending }] of this.#generations) {
      if (!owners.has(subject) && pending.size === 0) this.#generations.delete(subject);
    }
  }
}
