import type { Redis } from './redis.ts';

/** A parsed `store.url`. */
export interface RedisAddress {
  readonly kind: Redis['kind'];
  readonly tls: boolean;
  readonly hosts: readonly { readonly host: string; readonly port: number }[];
  /** Name of the primary that the Sentinels watch. */
  readonly primaryName?: string;
  readonly username?: string;
  readonly password?: string;
  readonly db: number;
}

const shape = /^(redis|rediss)(?:\+(cluster|sentinel))?:\/\/(?:(.*)@)?([^/@?#]+)((?:\/[^/?#]*){0,2})$/;
const hostShape = /^(\[[0-9a-fA-F:.]+\]|[^:[\]\s]+)(?::(\d{1,5}))?$/;

/**
 * Parses `redis://`, `rediss://` (TLS), `redis+cluster://h1,h2`, `redis+sentinel://h1,h2/name` (`rediss+…` with TLS), each
 * optionally with `user:password@` before the hosts and `/db` at the end. Throws an Error, which never repeats the URL, since
 * that may contain a password.
 */
export function parseRedisUrl(url: string): RedisAddress {
  const [, scheme, topology, userinfo, hosts = '', path = ''] = shape.exec(url) ?? [];
  if (scheme === undefined) {
    throw new Error(
      'store.url must have one of the forms redis://host:port/db, rediss://…, redis+cluster://h1,h2, redis+sentinel://h1,h2/name',
    );
  }
  const kind = topology === 'cluster' || topology === 'sentinel' ? topology : 'single';
  const parts = path.split('/').slice(1);
  const primaryName = kind === 'sentinel' ? decode(parts.shift() ?? '') : undefined;
  if (primaryName === '') throw new Error('store.url names no primary: redis+sentinel://h1,h2/name');
  if (kind !== 'sentinel' && parts.length > 1) throw new Error('store.url has more than /db after the hosts');
  const parsed = hosts.split(',').map((host) => parseHost(host, kind === 'sentinel' ? 26379 : 6379));
  if (kind === 'single' && parsed.length > 1) {
    throw new Error('store.url names several hosts: use redis+cluster:// or redis+sentinel://');
  }
  return {
    kind,
    tls: scheme === 'rediss',
    hosts: parsed,
    ...(primaryName === undefined ? {} : { primaryName }),
    ...parseUserinfo(userinfo),
    db: parseDb(parts[0] ?? '', kind),
  };
}

function parseHost(text: string, defaultPort: number): { host: string; port: number } {
  const [, host, port] = hostShape.exec(text.trim()) ?? [];
  const number = port === undefined ? defaultPort : Number(port);
  if (host === undefined || number < 1 || number > 65535)
    throw new Error('store.url has a malformed host or port');
  return { host: host.replace(/^\[|\]$/g, ''), port: number };
}

function parseUserinfo(userinfo: string | undefined): { username?: string; password?: string } {
  if (userinfo === undefined) return {};
  const colon = userinfo.indexOf(':');
  const username = decode(colon === -1 ? userinfo : userinfo.slice(0, colon));
  const password = colon === -1 ? '' : decode(userinfo.slice(colon + 1));
  return { ...(username === '' ? {} : { username }), ...(password === '' ? {} : { password }) };
}

function parseDb(text: string, kind: Redis['kind']): number {
  if (text === '') return 0;
  if (!/^\d{1,4}$/.test(text)) throw new Error('store.url has a malformed database number');
  if (kind === 'cluster' && Number(text) !== 0) throw new Error('store.url: a Cluster has only database 0');
  return Number(text);
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new Error('store.url has bad percent-encoding');
  }
}
