import { jsonQuery } from '../response/self-link.ts';
import { mappingKey } from './key.ts';
import { type ResolverQuery, readResolverQuery } from './url-parameter.ts';

/** All that is made of a raw query, whoever sends it. */
export interface ReadQuery extends ResolverQuery {
  /** The query as it stands in a JSON string of `links.self`. */
  readonly selfQuery: string;
  /** The key that was last made of it, and for which prefix. */
  keyPrefix: string;
  key: string;
}

const rememberedQueries = 4096;
const longestRemembered = 256;

/**
 * Reads queries and remembers the last few thousand spellings: most requests ask for what others asked a moment ago, and
 * decoding and escaping cost more than the look-up itself. Nothing here ever changes, so nothing is ever stale.
 */
export function createQueryReader(): (query: string) => ReadQuery {
  let recent = new Map<string, ReadQuery>();
  let older = new Map<string, ReadQuery>();
  return (query) => {
    const known = recent.get(query);
    if (known !== undefined) return known;
    const read = older.get(query) ?? readAll(query);
    if (query.length > longestRemembered) return read;
    if (recent.size >= rememberedQueries / 2) {
      older = recent;
      recent = new Map();
    }
    recent.set(query, read);
    return read;
  };
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
  return { url, store, selfQuery: jsonQuery(query), keyPrefix: '', key: '' };
}
