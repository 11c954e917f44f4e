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

/** Text of a purge in the log. */
export function writePurge(purge: Purge): string {
  return JSON.stringify(purge);
}

/** Reads a line `seq:id:previousId:purge` of the log. What it cannot read it takes for a purge of all: the safe side. */
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
