import { LRUCache } from 'lru-cache';
import {
  type KindName,
  type KnownTokens,
  type NextRecord,
  type Records,
  type Seen,
  tokens,
} from './protocol.ts';
import { TokenStore, type TokenStoreOptions } from './token-store.ts';
import type { TokenDigest } from './token-values.ts';

interface MemoryTokenStoreOptions extends TokenStoreOptions {
  /**
   * Records of known tokens, subjects and families; beyond this number the one that changed longest ago is dropped. Default
   * 100000. Only tests set it.
   */
  readonly maxRecords?: number;
  /** Clock in milliseconds since 1970. Default `Date.now`. */
  readonly now?: () => number;
  /** Called with the number of evicted records. */
  readonly onEvict?: (records: number) => void;
}

interface Entry {
  readonly text: string;
  readonly endsAtMs: number;
}

/** Maximum number of sealed answers that are kept. */
const maxAnswers = 1000;

/** Records of a single process, lost when it ends. Exported for its tests. */
export class MemoryRecords implements Records {
  readonly #maxRecords: number;
  readonly #now: () => number;
  readonly #onEvict: (records: number) => void;
  /** In the order of their last change. */
  readonly #kept = new Map<string, Entry>();
  /** Of unknown tokens, which may not exist: kept apart, so that they never evict another record. */
  readonly #orphans = new Map<string, Entry>();
  #sweptAtMs = 0;
  readonly #answers = new LRUCache<TokenDigest, string>({ max: maxAnswers });

  constructor({ maxRecords, now, onEvict }: Omit<MemoryTokenStoreOptions, keyof TokenStoreOptions>) {
    this.#maxRecords = maxRecords ?? 100_000;
    this.#now = now ?? Date.now;
    this.#onEvict = onEvict ?? (() => undefined);
  }

  /** Records that may be evicted: known tokens, subjects and families. */
  get size(): number {
    return this.#kept.size;
  }

  /** Records of unknown tokens. */
  get orphans(): number {
    return this.#orphans.size;
  }

  read(kind: KindName, id: string): Seen {
    const key = keyOf(kind, id);
    const { text = '', endsAtMs = 0 } = this.#kept.get(key) ?? this.#orphans.get(key) ?? {};
    const now = this.#now();
    return { text: endsAtMs > now ? text : '', nowMicros: now * 1000 };
  }

  replace(kind: KindName, id: string, seen: string, next: NextRecord): Seen | 'replaced' {
    const current = this.read(kind, id);
    if (current.text !== seen) return current;
    const key = keyOf(kind, id);
    this.#kept.delete(key);
    this.#orphans.delete(key);
    const entry = { text: next.text, endsAtMs: this.#now() + next.keptMs };
    const isOrphan = kind === 'token' && next.expiresAtMs === undefined;
    if (next.text !== '') (isOrphan ? this.#orphans : this.#kept).set(key, entry);
    if (this.#kept.size > this.#maxRecords) this.#evict();
    this.#sweep();
    return 'replaced';
  }

  async *known(): AsyncIterable<KnownTokens> {
    const prefix = keyOf('token', '');
    const found = [...this.#kept].filter(([key]) => key.startsWith(prefix));
    yield {
      nowMicros: this.#now() * 1000,
      tokens: found.map(([key, { text }]) => ({ token: key.slice(prefix.length) as TokenDigest, text })),
    };
  }

  keepAnswer(token: TokenDigest, text: string): void {
    this.#answers.set(token, text);
  }

  answerOf(token: TokenDigest): string | null {
    return this.#answers.get(token) ?? null;
  }

  /** Evicts the record that changed longest ago, but no token whose refresh is under way. */
  #evict(): void {
    for (const [key, { text }] of this.#kept) {
      const isClaimed = key.startsWith('token') && (tokens.decode(text).claim?.untilMs ?? 0) > this.#now();
      if (isClaimed) continue;
      this.#kept.delete(key);
      this.#onEvict(1);
      return;
    }
  }

  /** Drops expired orphans; at most once a second, since it visits all of them. */
  #sweep(): void {
    const now = this.#now();
    if (Math.abs(now - this.#sweptAtMs) < 1000) return;
    this.#sweptAtMs = now;
    for (const [key, { endsAtMs }] of this.#orphans) if (endsAtMs <= now) this.#orphans.delete(key);
  }
}

function keyOf(kind: KindName, id: string): string {
  return `${kind} ${id}`;
}

/** The store of a single process. The shop alone decides on a token whose record was evicted. */
export class MemoryTokenStore extends TokenStore {
  readonly records: MemoryRecords;

  constructor(options: MemoryTokenStoreOptions) {
    const records = new MemoryRecords(options);
    super(records, options);
    this.records = records;
  }
}
