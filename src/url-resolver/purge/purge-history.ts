import { foldUrl } from './fold-url.ts';
import type { Position, PurgeEntry } from './purge.ts';

/** Entries of the log that are kept, there and here; what has an older stamp is not believed. */
export const retainedPurges = 10_000;

interface PurgedPrefix {
  readonly prefix: string;
  /** By `foldUrl`. */
  readonly folded: string;
  readonly seq: number;
}

/**
 * The purges that this process knows, and the rule of docs/decisions/url-mapping-purge.md: a value with stamp `s` holds
 * only if `s` lies on this past and no purge after `s` covers its URL.
 */
export class PurgeHistory {
  #position: Position;
  #firstSeq: number;
  #ids: string[];
  /** By `foldUrl`. */
  readonly #urls = new Map<string, number>();
  #prefixes: PurgedPrefix[] = [];

  constructor(position: Position) {
    this.#position = position;
    this.#firstSeq = position.seq;
    this.#ids = [position.id];
  }

  get position(): Position {
    return this.#position;
  }

  /** Begins another past: no stamp so far is believed any more. */
  restart(position: Position): void {
    this.#position = position;
    this.#firstSeq = position.seq;
    this.#ids = [position.id];
    this.#urls.clear();
    this.#prefixes = [];
  }

  /** Takes the next entry over. The caller has seen to it that it follows `position`. */
  append(entry: PurgeEntry): void {
    this.#position = { seq: entry.seq, id: entry.id };
    this.#ids.push(entry.id);
    if (entry.purge === null) return;
    if (entry.purge === 'all') this.#addPrefix('', entry.seq);
    else if ('prefix' in entry.purge) this.#addPrefix(entry.purge.prefix, entry.seq);
    else {
      const folded = foldUrl(entry.purge.url);
      // Deleted first, so that the map stays in the order of the log.
      this.#urls.delete(folded);
      this.#urls.set(folded, entry.seq);
    }
    if (this.#ids.length > 2 * retainedPurges) this.#trim();
  }

  /** Id of the entry `seq`, undefined when it is not (or no more) on this past. */
  idAt(seq: number): string | undefined {
    return this.#ids[seq - this.#firstSeq];
  }

  /** The rule, for a stamp that came from elsewhere or before a wait. */
  accepts(stamp: Position, url: string): boolean {
    return this.idAt(stamp.seq) === stamp.id && !this.isPurgedSince(stamp.seq, url);
  }

  /** The rule's second half, for a stamp that is known to lie on this past. */
  isPurgedSince(seq: number, url: string): boolean {
    if (seq === this.#position.seq) return false;
    if (seq < this.#firstSeq) return true;
    const foldedUrl = foldUrl(url);
    if ((this.#urls.get(foldedUrl) ?? -1) > seq) return true;
    // As it is written, too: a prefix may end in the middle of what is folded as one.
    return this.#prefixes.some(
      ({ prefix, folded, seq: at }) => at > seq && (url.startsWith(prefix) || foldedUrl.startsWith(folded)),
    );
  }

  #addPrefix(prefix: string, seq: number): void {
    const folded = foldUrl(prefix);
    // A narrower prefix purged earlier says nothing that this one does not say.
    this.#prefixes = this.#prefixes.filter(
      (purged) => !(purged.prefix.startsWith(prefix) && purged.folded.startsWith(folded)),
    );
    this.#prefixes.push({ prefix, folded, seq });
    if (prefix === '') this.#urls.clear();
  }

  #trim(): void {
    this.#ids = this.#ids.slice(-retainedPurges);
    const first = this.#position.seq - retainedPurges + 1;
    this.#firstSeq = first;
    this.#prefixes = this.#prefixes.filter((purged) => purged.seq > first);
    for (const [url, seq] of this.#urls) {
      if (seq > first) break;
      this.#urls.delete(url);
    }
  }
}
