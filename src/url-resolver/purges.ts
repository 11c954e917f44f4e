import { randomBytes } from 'node:crypto';
import { decodeOctets } from '../http/form-encoding.ts';
import { singleFlight } from '../lib/eventually.ts';
import { isolated, isolateLate } from '../lib/faults.ts';
import { defineScript, type Redis } from '../redis/redis.ts';
import { isShortEnough } from './envelope.ts';

/** The URLs to purge; `url` and `prefix` are decoded, as in the `url` attribute. */
export type Purge = { readonly url: string } | { readonly prefix: string } | 'all';

/** Maximum number of URLs that a process tells apart; one more becomes a purge of everything. Exported for its tests. */
export const maxUrls = 10_000;
/** The same for prefixes. Fewer, because each look-up compares its URL with all of them. Exported for its tests. */
export const maxPrefixes = 100;

/** The purges that a process knows. Equal stamps of a URL mean that no purge of it came in between. */
export class Purges {
  /** Counts the purges; while it is the same, so is every stamp. */
  version = 0;
  #everything = 0;
  /** By folded URL. */
  readonly #urls = new Map<string, number>();
  readonly #prefixes = new Map<string, { readonly folded: string; readonly version: number }>();

  /** The version of the last purge that covers the URL. */
  stampOf(url: string): number {
    if (this.#urls.size === 0 && this.#prefixes.size === 0) return this.#everything;
    const foldedUrl = foldUrl(url);
    let stamp = Math.max(this.#everything, this.#urls.get(foldedUrl) ?? 0);
    for (const [prefix, { folded, version }] of this.#prefixes) {
      // Unfolded as well: a prefix may end in the middle of characters that are folded together.
      const isCovered = url.startsWith(prefix) || foldedUrl.startsWith(folded);
      if (isCovered && version > stamp) stamp = version;
    }
    return stamp;
  }

  add(purge: Purge): void {
    this.version += 1;
    if (purge === 'all') this.#addAll();
    else if ('url' in purge) this.#urls.set(foldUrl(purge.url), this.version);
    else this.#prefixes.set(purge.prefix, { folded: foldUrl(purge.prefix), version: this.version });
    if (this.#urls.size > maxUrls || this.#prefixes.size > maxPrefixes) this.#addAll();
  }

  #addAll(): void {
    this.#everything = this.version;
    this.#urls.clear();
    this.#prefixes.clear();
  }
}

/** How often the shop decodes a value again that was decoded already. */
const shopDecodings = 2;

/**
 * The same text for all spellings that the shop takes for one URL: it decodes again, trims, ignores case, and replaces quotes,
 * spaces and line breaks by `-`. In doubt it folds too much: to purge too much costs a look-up, to purge too little gives wrong
 * answers. Slashes count, as at the shop. Exported for its tests.
 */
export function foldUrl(url: string): string {
  let text = url;
  for (let i = 0; i < shopDecodings; i += 1) {
    // Invalid UTF-8 is decoded, too: all of it becomes U+FFFD.
    if (text.includes('%') || text.includes('+')) text = decodeOctets(Buffer.from(text)).toString();
  }
  const dashed = text
    .replaceAll('\0', ' ')
    .trim()
    .replace(/["' \r\n]/g, '-');
  // Both, since the lower case of a sigma depends on what follows it.
  return dashed.toLowerCase().toUpperCase();
}

/** The purges that all processes share, each as a text of its own. Its calls reject when the store cannot be reached. */
export interface PurgeLog {
  add(entry: string): Promise<unknown>;
  /** The entries from one index to another, the newest first. */
  read(first: number, last: number): Promise<readonly string[]>;
}

/** Purges that the log keeps, few enough to be added in one tick. Exported for its tests. */
export const keptPurges = 1_000;
/** Entries that are read at a time. */
const chunk = 200;

/** Polling interval: a purge reaches every process within this time and a round trip, less than a second. */
const readEveryMs = 500;

/** Adds the purges of the log to those of this process, by the transitions of docs/decisions/url-mapping-purge.md. */
export class PurgeFollower {
  readonly purges = new Purges();
  readonly #log: PurgeLog | undefined;
  readonly #onLost: () => void;
  /** The newest entry that this process knows. */
  #known = '';
  #mustReadAgain = false;
  #timer: NodeJS.Timeout | undefined;

  /** Without a log, this process is the only one. `onLost`: purges may have been missed, so everything was purged. */
  constructor(log: PurgeLog | undefined, onLost: () => void) {
    this.#log = log;
    this.#onLost = onLost;
  }

  async start(): Promise<void> {
    if (this.#log === undefined) return;
    const read = isolated(() => isolateLate(this.catchUp()));
    this.#timer = setInterval(read, readEveryMs).unref();
    await this.catchUp();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Resolves once this process knows the purge and all earlier ones. Rejects when the store cannot be reached. */
  async purge(purge: Purge): Promise<void> {
    if (this.#log === undefined) return this.purges.add(purge);
    await this.#log.add(entryOf(purge));
    if (!(await this.catchUp())) throw new Error('the purges cannot be read');
  }

  /** Reads the log; false: it cannot be reached. A call during a reading causes another one. Never rejects. */
  catchUp(): Promise<boolean> {
    this.#mustReadAgain = true;
    return this.#readAll();
  }

  readonly #readAll = singleFlight(async () => {
    let isRead = true;
    while (this.#mustReadAgain && this.#log !== undefined) {
      this.#mustReadAgain = false;
      isRead = await this.#read(this.#log).then(
        () => true,
        () => false,
      );
    }
    return isRead;
  });

  async #read(log: PurgeLog): Promise<void> {
    let [newest] = await log.read(0, 0);
    if (newest === undefined) {
      // The log is new or was emptied. With an entry in it, the next loss is noticed.
      newest = entryOf(nothing);
      await log.add(newest);
    }
    if (newest === this.#known) return;
    const missed = this.#known === '' ? undefined : await entriesSince(log, this.#known);
    if (missed === undefined) {
      this.purges.add('all');
      this.#onLost();
      this.#known = newest;
      return;
    }
    for (const entry of missed.toReversed()) {
      const purge = purgeOf(entry);
      if (purge !== nothing) this.purges.add(purge);
    }
    this.#known = missed[0] ?? this.#known;
  }
}

/** The entries after `known`, the newest first; undefined: it is not in the log, so others may be missing as well. */
async function entriesSince(log: PurgeLog, known: string): Promise<readonly string[] | undefined> {
  const found: string[] = [];
  for (let first = 0; first < keptPurges; first += chunk) {
    // A purge that comes meanwhile moves the others: an entry may be read twice, and none is left out.
    const entries = await log.read(first, first + chunk - 1);
    const end = entries.indexOf(known);
    found.push(...(end < 0 ? entries : entries.slice(0, end)));
    if (end >= 0) return found;
    if (entries.length < chunk) return undefined;
  }
  return undefined;
}

/** The first entry of a log purges nothing. */
const nothing = 'nothing';

/** `p:` and a prefix, or `u:` and a URL, behind a random name: two purges of one URL are two entries. */
function entryOf(purge: Purge | typeof nothing): string {
  const name = randomBytes(9).toString('base64url');
  if (purge === nothing) return `${name} ${nothing}`;
  return `${name} ${purge === 'all' ? 'p:' : 'url' in purge ? `u:${purge.url}` : `p:${purge.prefix}`}`;
}

/** An entry that is not understood purges everything. */
function purgeOf(entry: string): Purge | typeof nothing {
  const scope = entry.slice(entry.indexOf(' ') + 1);
  if (scope === nothing) return nothing;
  const text = scope.slice(2);
  if (text === '' || !isShortEnough(text)) return 'all';
  if (scope.startsWith('u:')) return { url: text };
  return scope.startsWith('p:') ? { prefix: text } : 'all';
}

/** Cuts entries that are longer than any of shopward's, so that a foreign one fills no connection. */
const readScript = defineScript(
  'read-purges',
  `
local entries = redis.call('LRANGE', KEYS[1], ARGV[1], ARGV[2])
for i, entry in ipairs(entries) do entries[i] = string.sub(entry, 1, 2100) end
return entries
`,
);

/** The log as a list `<prefix>:purges` in Redis. */
export function createRedisPurgeLog(redis: Redis, prefix: string): PurgeLog {
  const key = `${prefix}:purges`;
  return {
    async add(entry) {
      await redis.command('LPUSH', key, entry);
      await redis.command('LTRIM', key, 0, keptPurges - 1);
    },
    async read(first, last) {
      const reply = await redis.runScript(readScript, [key], [first, last]);
      return Array.isArray(reply) ? reply.map(String) : [];
    },
  };
}
