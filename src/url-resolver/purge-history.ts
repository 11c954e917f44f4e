import { randomUUID } from 'node:crypto';
import { decodeOctets } from '../http/form-encoding.ts';
import {
  type Position,
  type PurgeEntry,
  type PurgeLog,
  type PurgeReading,
  retainedPurges,
} from './purge-log.ts';

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

/** As often as the shop decodes what it was given already decoded. */
const shopDecodings = 2;

/**
 * One text for all spellings that the shop takes for one URL: it decodes again, trims, ignores case, and puts `-` for quotes,
 * spaces and line breaks. Where its reading is unclear this one is the broader: a purge of too much costs a question, one of
 * too little gives out what is wrong. Slashes count, as they do there. Exported for its tests.
 */
export function foldUrl(url: string): string {
  let text = url;
  for (let i = 0; i < shopDecodings; i += 1) {
    // Also where it is not UTF-8: what cannot be read is then alike.
    if (text.includes('%') || text.includes('+')) text = decodeOctets(Buffer.from(text)).toString();
  }
  const dashed = text
    .replaceAll('\0', ' ')
    .trim()
    .replace(/["' \r\n]/g, '-');
  // Lower case alone depends on what follows a sigma.
  return dashed.toLowerCase().toUpperCase();
}

/** A subscription that is dead without saying so is found out by a look at the log this often. */
const lookEveryMs = 1000;

/** Keeps one `PurgeHistory` up with the log: the transitions of docs/decisions/url-mapping-purge.md. */
export class PurgeFollower {
  /** Begins on a past of its own, which the first reading of the log replaces. */
  readonly history = new PurgeHistory({ seq: 0, id: randomUUID() });
  readonly #log: PurgeLog;
  readonly #forget: () => void;
  #reading: Promise<void> | undefined;
  #readAgain = false;
  #unsubscribe: (() => void) | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** `forget` drops every entry of the process: called when the log shows another past. */
  constructor(log: PurgeLog, forget: () => void) {
    this.#log = log;
    this.#forget = forget;
  }

  /** Subscribes, then reads the log once; a log that is away is read later. */
  async start(): Promise<void> {
    this.#unsubscribe = this.#log.subscribe({
      onEntry: (entry) => this.hear(entry),
      onGap: () => void this.catchUp(),
    });
    this.#timer = setInterval(() => void this.catchUp(), lookEveryMs).unref();
    await this.catchUp();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#unsubscribe?.();
  }

  /** Reads the log from the own position on. Never rejects. A call during a reading causes one more. */
  catchUp(): Promise<void> {
    if (this.#reading !== undefined) {
      this.#readAgain = true;
      return this.#reading;
    }
    this.#reading = this.#read().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  /** Takes an entry over if it is the next one; reads the log if something is missing in between. */
  hear(entry: PurgeEntry): void {
    if (this.#follows(entry)) this.history.append(entry);
    else if (this.history.idAt(entry.seq) !== entry.id) void this.catchUp();
  }

  async #read(): Promise<void> {
    do {
      this.#readAgain = false;
      try {
        this.#take(await this.#log.read(this.history.position));
      } catch {
        // Away. The next look, or the reconnection, reads it.
        return;
      }
    } while (this.#readAgain);
  }

  #take(reading: PurgeReading): void {
    if (reading.kind === 'another-past') {
      this.history.restart(reading.position);
      this.#forget();
      return;
    }
    // A message may have overtaken the reading: the entry is then known already.
    for (const entry of reading.entries) if (this.#follows(entry)) this.history.append(entry);
  }

  #follows(entry: PurgeEntry): boolean {
    const { seq, id } = this.history.position;
    return entry.seq === seq + 1 && entry.previousId === id;
  }
}
