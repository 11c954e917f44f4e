import { randomUUID } from 'node:crypto';
import { defineScript, type Redis } from '../redis/redis.ts';

/** Which URLs are not to be believed any more; `url` and `prefix` are decoded, as the `url` attribute gives them. */
export type Purge = { readonly url: string } | { readonly prefix: string } | 'all';

/** Place in the purge log. `id` is random: one equal position means one equal past. */
export interface Position {
  readonly seq: number;
  readonly id: string;
}

export interface PurgeEntry extends Position {
  readonly previousId: string;
  /** Null: entry 0, with which a log begins. */
  readonly purge: Purge | null;
}

/** Entries of the log that are kept, there and here; what has an older stamp is not believed. */
export const retainedPurges = 10_000;

/** Text of a purge in the log. */
function writePurge(purge: Purge): string {
  return JSON.stringify(purge);
}

/**
 * Reads a line `seq:id:previousId:purge` of the log. What it cannot read it takes for a purge of all: the safe side.
 * Exported for its tests.
 */
export function readPurgeEntry(line: string): PurgeEntry {
  const [seq = '', id = '', previousId = ''] = line.split(':', 3);
  const text = line.slice(seq.length + id.length + previousId.length + 3);
  return { seq: Number(seq), id, previousId, purge: readPurge(text) };
}

function readPurge(text: string): Purge | null {
  try {
    const value: unknown = JSON.parse(text);
    if (value === null) return null;
    if (typeof value === 'object' && 'url' in value && typeof value.url === 'string')
      return { url: value.url };
    if (typeof value === 'object' && 'prefix' in value && typeof value.prefix === 'string') {
      return { prefix: value.prefix };
    }
  } catch {
    // A line of a newer version, or damaged.
  }
  return 'all';
}

/** The log of purges that all replicas follow. */
export interface PurgeLog {
  /** Appends and publishes in one step. Rejects when the log cannot be reached: the purge is then not in force. */
  append(purge: Purge): Promise<PurgeEntry>;
  /** What follows `from`, or where the log stands if `from` is not on it. Rejects when the log cannot be reached. */
  read(from: Position): Promise<PurgeReading>;
  /** Tells of each new entry, and of each moment after which entries may have been missed. Returns the end of it. */
  subscribe(listener: PurgeListener): () => void;
}

export type PurgeReading =
  | { readonly kind: 'continues'; readonly entries: readonly PurgeEntry[] }
  | { readonly kind: 'another-past'; readonly position: Position };

interface PurgeListener {
  onEntry(entry: PurgeEntry): void;
  onGap(): void;
}

/** The log of one process that has no Redis. Several resolvers may follow it. */
export class MemoryPurgeLog implements PurgeLog {
  #entries: PurgeEntry[] = [{ seq: 0, id: randomUUID(), previousId: '', purge: null }];
  readonly #listeners = new Set<PurgeListener>();

  async append(purge: Purge): Promise<PurgeEntry> {
    const last = this.#last();
    const entry = { seq: last.seq + 1, id: randomUUID(), previousId: last.id, purge };
    this.#entries.push(entry);
    if (this.#entries.length > 2 * retainedPurges) this.#entries = this.#entries.slice(-retainedPurges);
    for (const listener of this.#listeners) listener.onEntry(entry);
    return entry;
  }

  async read(from: Position): Promise<PurgeReading> {
    const index = this.#entries.findIndex((entry) => entry.seq === from.seq && entry.id === from.id);
    if (index < 0) return { kind: 'another-past', position: this.#last() };
    return { kind: 'continues', entries: this.#entries.slice(index + 1) };
  }

  subscribe(listener: PurgeListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #last(): PurgeEntry {
    return this.#entries[this.#entries.length - 1] as PurgeEntry;
  }
}

// A line is `seq:id:previousId:purge`. One key, so one slot: each script is one step.
const begin = `
local function last(key, id)
  local line = redis.call('LINDEX', key, -1)
  if not line then
    line = '0:' .. id .. '::null'
    redis.call('RPUSH', key, line)
  end
  return line, string.match(line, '^(%d+):([^:]*):')
end
`;

// KEYS log; ARGV id of entry 0 if there is no log, id, purge, channel, entries to keep
const appendScript = defineScript(
  'purge-append',
  `${begin}
local _, seq, id = last(KEYS[1], ARGV[1])
local line = string.format('%.0f', seq + 1) .. ':' .. ARGV[2] .. ':' .. id .. ':' .. ARGV[3]
redis.call('RPUSH', KEYS[1], line)
redis.call('LTRIM', KEYS[1], -tonumber(ARGV[5]), -1)
redis.call('PUBLISH', ARGV[4], line)
return line
`,
);

// KEYS log; ARGV id of entry 0 if there is no log, seq, id
const readScript = defineScript(
  'purge-read',
  `${begin}
local line, seq, id = last(KEYS[1], ARGV[1])
local missing = seq - tonumber(ARGV[2])
if missing == 0 and id == ARGV[3] then return {'continues'} end
if missing > 0 then
  local lines = redis.call('LRANGE', KEYS[1], -(missing + 1), -1)
  local firstSeq, firstId = string.match(lines[1], '^(%d+):([^:]*):')
  if tonumber(firstSeq) == tonumber(ARGV[2]) and firstId == ARGV[3] then
    lines[1] = 'continues'
    return lines
  end
end
return {'another-past', line}
`,
);

/** The purge log as a list `<prefix>:purges` in Redis, with a channel of the same name. */
export function createRedisPurgeLog(redis: Redis, prefix: string): PurgeLog {
  const key = `${prefix}:purges`;
  return {
    async append(purge): Promise<PurgeEntry> {
      const args = [randomUUID(), randomUUID(), writePurge(purge), key, retainedPurges];
      return readPurgeEntry(String(await redis.runScript(appendScript, [key], args)));
    },
    async read(from): Promise<PurgeReading> {
      const reply = await redis.runScript(readScript, [key], [randomUUID(), from.seq, from.id]);
      const [kind, ...lines] = (reply as unknown[]).map(String);
      const entries = lines.map(readPurgeEntry);
      if (kind === 'continues') return { kind, entries };
      const [last] = entries;
      if (last === undefined) throw new Error('the purge log gave no position');
      return { kind: 'another-past', position: { seq: last.seq, id: last.id } };
    },
    subscribe(listener) {
      return redis.subscribe(
        key,
        (line) => listener.onEntry(readPurgeEntry(line)),
        () => listener.onGap(),
      );
    },
  };
}
