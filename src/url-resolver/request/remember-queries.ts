import { jsonQuery } from '../response/self-link.ts';
import { mappingKey } from './key.ts';
import { type ResolverQuery, readResolverQuery } from './url-parameter.ts';

/** All that is made of a raw query, whoever sends it. */
export interface ReadQuery extends ResolverQuery {
  readonly query: string;
  /** The query as it stands in a JSON string of `links.self`. */
  readonly selfQuery: string;
  /** The key that was last made of it, and for which prefix. */
  keyPrefix: string;
  key: string;
}

const slots = 8192;
const longestRemembered = 256;

/**
 * Reads queries and remembers the last few thousand spellings that came more than once: most requests ask for what others
 * asked a moment ago, and decoding and escaping cost more than the look-up itself. A spelling has one slot, by its mark. What
 * comes once leaves no object behind, since the collector would pay for it with a walk over the whole cache. Nothing here
 * is ever stale.
 */
export function createQueryReader(): (query: string) => ReadQuery {
  const kept = new Array<ReadQuery | undefined>(slots).fill(undefined);
  const keptMarks = new Uint32Array(slots);
  const seenMarks = new Uint32Array(slots);

  return (query) => {
    const mark = markOf(query);
    const slot = mark % slots;
    if (keptMarks[slot] === mark) {
      const known = kept[slot];
      if (known?.query === query) return known;
    }
    const read = readAll(query);
    if (seenMarks[slot] !== mark) {
      seenMarks[slot] = mark;
    } else if (query.length <= longestRemembered) {
      kept[slot] = read;
      keptMarks[slot] = mark;
    }
    return read;
  };
}

/** Tells queries apart well enough to know one that came before: by their ends, where URLs differ. */
function markOf(query: string): number {
  let mark = query.length;
  for (let i = Math.max(0, query.length - 24); i < query.length; i += 1) {
    mark = Math.imul(mark ^ query.charCodeAt(i), 0x01000193);
  }
  return (mark ^ (mark >>> 15)) >>> 0;
}

/** `mappingKey` of a URL that was read: a string that is used again is not hashed again. */
export function keyOf(read: ReadQuery, prefix: string, url: string): string {
  if (read.keyPrefix !== prefix) {
    read.key = mappingKey(prefix, url);
    read.keyPrefix = prefix;
  }
  return read.key;
}

function readAll(query: string): ReadQuery {
  const { url, store } = readResolverQuery(query);
  return { query, url, store, selfQuery: jsonQuery(query), keyPrefix: '', key: '' };
}
