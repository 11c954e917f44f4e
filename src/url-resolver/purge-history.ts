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
 * The purges that this process knows, and the rule of docs/decisions/url-mapping-purge.md: a value with stamp `s` is valid
 * only if `s` lies on this history and no purge after `s` covers its URL.
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

  /** Begins another history: all stamps so far become invalid. */
  restart(position: Position): void {
    this.#position = position;
    this.#firstSeq = position.seq;
    this.#ids = [position.id];
    this.#urls.clear();
    this.#prefixes = [];
  }

  /** Appends the next entry, which has to follow `position`. */
  append(entry: PurgeEntry): void {
    this.#position = { seq: entry.seq, id: entry.id };
    this.#ids.push(entry.id);
    if (entry.purge === null) return;
    if (entry.purge === 'all') this.#addPrefix('', entry.seq);
    else if ('prefix' in entry.purge) this.#addPrefix(entry.purge.prefix, entry.seq);
    else {
      const folded = foldUrl(entry.purge.url);
      // Delete first, to keep the map in the order of the log.
      this.#urls.delete(folded);
      this.#urls.set(folded, entry.seq);
    }
    if (this.#ids.length > 2 * retainedPurges) this.#trim();
  }

  /** Id of the entry `seq`; undefined: it is not on this history, or not any more. */
  idAt(seq: number): string | undefined {
    return this.#ids[seq - this.#firstSeq];
  }

  /** The whole rule, for a stamp from another process or from before a wait. */
  accepts(stamp: Position, url: string): boolean {
    return this.idAt(stamp.seq) === stamp.id && !this.isPurgedSince(stamp.seq, url);
  }

  /** The second half of the rule, for a stamp that is known to lie on this history. */
  isPurgedSince(seq: number, url: string): boolean {
    if (seq === this.#position.seq) return false;
    if (seq < this.#firstSeq) return true;
    const foldedUrl = foldUrl(url);
    if ((this.#urls.get(foldedUrl) ?? -1) > seq) return true;
    // Unfolded as well: a prefix may end in the middle of characters that are folded together.
    return this.#prefixes.some(
      ({ prefix, folded, seq: at }) => at > seq && (url.startsWith(prefix) || foldedUrl.startsWith(folded)),
    );
  }

  #addPrefix(prefix: string, seq: number): void {
    const folded = foldUrl(prefix);
    // Earlier purges of longer prefixes are covered by this one.
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

/** How often the shop decodes a value again that was decoded already. */
const shopDecodings = 2;

/**
 * The same text for all spellings that the shop takes for one URL: it decodes again, trims, ignores case, and replaces quotes,
 * spaces and line breaks by `-`. In doubt it folds too much: to purge too much costs a lookup, to purge too little gives wrong
 * answers. Slashes count, as at the shop. Exported for its tests.
 */
export function foldUrl(url: string): string {
  let text = url;
  for (let i = 0; i < shopDecodings; i += 1) {
    // Invalid UTF-8 as well: it becomes U+FFFD, and so alike.
    if (text.includes('%') || text.includes('+')) text = decodeOctets(Buffer.from(text)).toString();
  }
  const dashed = text
    .replaceAll('\0', ' ')
    .trim()
    .replace(/["' \r\n]/g, '-');
  // Both, since the lower case of a sigma depends on what follows it.
  return dashed.toLowerCase().toUpperCase();
}

/** The log is also read this often, in case the subscription has died unnoticed. */
const lookEveryMs = 1000;

/** Keeps a `PurgeHistory` up to date with the log, by the transitions of docs/decisions/url-mapping-purge.md. */
export class PurgeFollower {
  /** Begins with a history of its own, which the first reading of the log replaces. */
  readonly history = new PurgeHistory({ seq: 0, id: randomUUID() });
  readonly #log: PurgeLog;
  readonly #forget: () => void;
  #reading: Promise<void> | undefined;
  #readAgain = false;
  #unsubscribe: (() => void) | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** `forget` is called when the log has another history, and has to drop every entry of the process. */
  constructor(log: PurgeLog, forget: () => void) {
    this.#log = log;
    this.#forget = forget;
  }

  /** Subscribes, then reads the log; one that cannot be reached is read later. */
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

  /** Reads the log from this process's position on. A call during a reading causes another one. Never rejects. */
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

  /** Appends a published entry if it is the next one; otherwise reads the log for what is missing. */
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
        // The log cannot be reached: it is read at the next interval, or after the reconnection.
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
    // Only those that follow: a message may have overtaken the reading.
    for (const entry of reading.entries) if (this.#follows(entry)) this.history.append(entry);
  }

  #follows(entry: PurgeEntry): boolean {
    const { seq, id } = this.history.position;
    return entry.seq === seq + 1 && entry.previousId === id;
  }
}
