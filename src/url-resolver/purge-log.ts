import { randomUUID } from 'node:crypto';
import { parseJsonObject } from '../lib/json.ts';
import { defineScript, type Redis } from '../redis/redis.ts';

/** The URLs to purge; `url` and `prefix` are decoded, as in the `url` attribute. */
export type Purge = { readonly url: string } | { readonly prefix: string } | 'all';

/** A position in the purge log. `id` is random, so that equal positions mean equal histories. */
export interface Position {
  readonly seq: number;
  readonly id: string;
}

export interface PurgeEntry extends Position {
  readonly previousId: string;
  /** Null for entry 0, with which a log begins. */
  readonly purge: Purge | null;
}

/** Entries that the log and each process keep; values with an older stamp are invalid. */
export const retainedPurges = 10_000;

/** Parses a line `seq:id:previousId:purge` of the log. An unreadable purge counts as one of all. Exported for its tests. */
export function readPurgeEntry(line: string): PurgeEntry {
  const [seq = '', id = '', previousId = ''] = line.split(':', 3);
  const text = line.slice(seq.length + id.length + previousId.length + 3);
  return { seq: Number(seq), id, previousId, purge: readPurge(text) };
}

function readPurge(text: string): Purge | null {
  if (text === 'null') return null;
  // Anything else than an object is a line of a newer version, or damaged.
  const { url, prefix } = parseJsonObject(text) ?? {};
  if (typeof url === 'string') return { url };
  return typeof prefix === 'string' ? { prefix } : 'all';
}

/** The port to the log of purges that all replicas follow. */
export interface PurgeLog {
  /** Appends and publishes in one step. Rejects when the log cannot be reached: the purge is then not in force. */
  append(purge: Purge): Promise<PurgeEntry>;
  /** The entries after `from`, or the log's position if `from` is not on it. Rejects when the log cannot be reached. */
  read(from: Position): Promise<PurgeReading>;
  /** Calls the listener for each new entry, and whenever entries may have been missed. Returns how to unsubscribe. */
  subscribe(listener: PurgeListener): () => void;
}

export type PurgeReading =
  | { readonly kind: 'continues'; readonly entries: readonly PurgeEntry[] }
  | { readonly kind: 'another-past'; readonly position: Position };

interface PurgeListener {
  onEntry(entry: PurgeEntry): void;
  onGap(): void;
}

/** The log of a process without Redis. Several resolvers may follow it. */
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
      const args = [randomUUID(), randomUUID(), JSON.stringify(purge), key, retainedPurges];
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
