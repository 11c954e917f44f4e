export interface StoreNode {
  readonly host: string;
  readonly port: number;
}

interface RedisAddress {
  /** `rediss` schemes. */
  readonly tls: boolean;
  readonly username: string | undefined;
  readonly password: string | undefined;
  /** The first node is the one of `single`. */
  readonly nodes: readonly StoreNode[];
  /** Number of the logical database; always 0 on a Cluster. */
  readonly database: number;
}

/** Where entity tags, refresh tokens and the shared mapping cache live: `store.url`, taken apart. */
export type StoreAddress =
  | { readonly kind: 'memory' }
  | ({ readonly kind: 'single' | 'cluster' } & RedisAddress)
  | ({ readonly kind: 'sentinel'; readonly name: string } & RedisAddress);

const forms = 'memory, redis://host, rediss://host, redis+cluster://h1,h2 or redis+sentinel://h1,h2/name';
const urlPattern = /^(rediss?)(?:\+(cluster|sentinel))?:\/\/(?:([^@/]*)@)?([^@/?#]+)(\/[^?#]*)?$/i;
const nodePattern = /^(\[[0-9a-f:.]{2,45}\]|[a-z0-9_](?:[a-z0-9._-]*[a-z0-9_])?)(?::(\d{1,5}))?$/i;

/**
 * Reads `store.url`. Returns a text that says what is wrong, without a word of the value: it may hold a password.
 */
export function parseStoreAddress(text: string): StoreAddress | string {
  if (text === 'memory') return { kind: 'memory' };
  const match = urlPattern.exec(text);
  if (match === null) return `must be ${forms}`;
  const kind = (match[2]?.toLowerCase() ?? 'single') as 'single' | 'cluster' | 'sentinel';
  const credentials = parseCredentials(match[3]);
  if (credentials === undefined) return 'has malformed percent-encoding in its user or password';
  const nodes = parseNodes(match[4] ?? '', kind === 'sentinel' ? 26_379 : 6379);
  if (nodes === undefined) return 'has a malformed host or port';
  const base = { tls: match[1]?.toLowerCase() === 'rediss', ...credentials, nodes };
  const path = (match[5] ?? '').split('/').slice(1);
  if (kind === 'sentinel') return sentinelAddress(base, path);
  if (kind === 'single' && nodes.length > 1) return `names several hosts: must be ${forms}`;
  const database = parseDatabase(path);
  if (database === undefined) return 'must end with the number of a database, such as /0, or with the host';
  if (kind === 'cluster' && database !== 0) return 'names a database, but a Cluster has only database 0';
  return { kind, ...base, database };
}

function sentinelAddress(
  base: Omit<RedisAddress, 'database'>,
  path: readonly string[],
): StoreAddress | string {
  const [name = '', ...rest] = path;
  if (!/^[\w.-]+$/.test(name)) return 'must name the primary: redis+sentinel://h1,h2/name';
  const database = parseDatabase(rest);
  return database === undefined
    ? 'must end with the number of a database, such as /0, or with the name'
    : { kind: 'sentinel', name, ...base, database };
}

function parseNodes(text: string, defaultPort: number): StoreNode[] | undefined {
  const nodes: StoreNode[] = [];
  for (const part of text.split(',')) {
    const match = nodePattern.exec(part);
    const port = match?.[2] === undefined ? defaultPort : Number(match[2]);
    if (match?.[1] === undefined || port < 1 || port > 65_535) return undefined;
    nodes.push({ host: match[1].replace(/^\[|\]$/g, ''), port });
  }
  return nodes;
}

function parseDatabase(path: readonly string[]): number | undefined {
  const text = path.join('/');
  if (text === '') return 0;
  return /^\d{1,5}$/.test(text) ? Number(text) : undefined;
}

function parseCredentials(text: string | undefined): Pick<RedisAddress, 'username' | 'password'> | undefined {
  if (text === undefined || text === '') return { username: undefined, password: undefined };
  const colon = text.indexOf(':');
  try {
    const username = decodeURIComponent(colon < 0 ? text : text.slice(0, colon));
    const password = colon < 0 ? '' : decodeURIComponent(text.slice(colon + 1));
    return { username: username || undefined, password: password || undefined };
  } catch {
    return undefined;
  }
}
