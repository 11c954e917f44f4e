import { hash } from 'node:crypto';
import type { Health } from './store-health.ts';

/**
 * The port to Redis, for every feature: a single node, a Cluster or Sentinel make no difference. Each call ends
 * within the connection's deadline: with the reply, or with `RedisUnavailable`. Nothing is ever queued while Redis is
 * away, nothing is ever sent twice.
 */
export interface Redis {
  readonly kind: 'single' | 'cluster' | 'sentinel';
  /** One command, on the node of its keys. Rejects with `RedisUnavailable` only. */
  command(name: string, ...args: readonly RedisArgument[]): Promise<unknown>;
  /**
   * One script; on a Cluster all keys must be of one slot. Rejects with `RedisUnavailable` only. A claim (`defineClaim`)
   * takes effect before this settles, or never; where that is not certain yet, the fault says until when.
   */
  runScript(script: RedisScript, keys: readonly string[], args: readonly RedisArgument[]): Promise<unknown>;
  /**
   * As `runScript` for a claim, then `WAIT` on the same connection: tells how many replicas hold what the script wrote.
   * Uses a connection of its own, because `WAIT` blocks whatever is sent after it; one `WAIT` confirms all that were sent
   * before it.
   */
  runScriptAndWait(
    script: RedisScript,
    keys: readonly string[],
    args: readonly RedisArgument[],
    replicas: number,
  ): Promise<{ readonly reply: unknown; readonly replicas: number }>;
  /**
   * Hears a channel until the returned function is called. `onReconnect` is called whenever messages may have been
   * missed: after each new connection but the first.
   */
  subscribe(channel: string, onMessage: (message: string) => void, onReconnect?: () => void): () => void;
  /** For health and metrics; never asks the server. */
  state(): Health;
  /** The same about what it relies on: replicas, claims, memory, rights. */
  status(): RedisStatus;
  /**
   * Waits until Redis was reached once and its eviction policy has been checked, at most `withinMs`. `false`: not
   * reached yet, connecting goes on. Throws `RedisUnavailable` with the word `evicting` when the policy may evict.
   */
  ready(withinMs: number): Promise<boolean>;
  close(): Promise<void>;
}

export type RedisArgument = string | number | Buffer;

/** A Lua script and the SHA-1 that Redis knows it by. */
export interface RedisScript {
  readonly name: string;
  readonly lua: string;
  readonly sha1: string;
  /** Made by `defineClaim`: it refuses itself when it is late. */
  readonly isClaim: boolean;
  /**
   * One call holds all that its caller asks in a turn of the event loop, and is made at its end: a key of the slot, then one
   * for each operation. Default: no.
   */
  readonly isGathered?: boolean;
}

export interface RedisStatus {
  /** Whether the replicas confirm; undefined where none is asked for. */
  readonly replication: Health | undefined;
  readonly claims: {
    readonly made: number;
    readonly totalMs: number;
    /** Those that too few replicas confirmed. */
    readonly unconfirmed: number;
    /** How many replicas confirmed the last one; undefined: none was asked. */
    readonly lastConfirmed: number | undefined;
  };
  /** What the servers said last; undefined before the first report. */
  readonly facts: ServerFacts | undefined;
  /** Commands that this user may not use and that are needed, by name. */
  readonly missingRights: readonly string[];
}

/** What the servers said about themselves last. */
export interface ServerFacts {
  /** A `maxmemory-policy` that throws records away; undefined where none does. A lease that vanishes means two writers. */
  readonly evictingPolicy: string | undefined;
  /** Of the fullest node; `maxBytes` 0: it has no limit. */
  readonly memory: { readonly usedBytes: number; readonly maxBytes: number };
  /** Replicas that have reported within the last seconds that they are there; of the node that has the fewest. */
  readonly connectedReplicas: number;
  /** Which process holds the data, and which history it is: either changes at a restart or a failover. */
  readonly runIds: string;
  readonly replicationIds: string;
}

/** Where a feature keeps its records in Redis. */
export interface RedisRecords {
  readonly redis: Redis;
  /** Begins every key; deployments that share a Redis need different ones. Default `shopward`. */
  readonly keyPrefix?: string;
  /**
   * How many replicas must have a claim before it counts: all that could be promoted. Default 0: then a
   * failover may lose a claim that was granted.
   */
  readonly replicas?: number;
}

/** A claim, and whether as many replicas have it as must. */
export async function runConfirmed(
  redis: Redis,
  script: RedisScript,
  keys: readonly string[],
  args: readonly RedisArgument[],
  replicas: number,
): Promise<{ readonly reply: unknown; readonly isConfirmed: boolean }> {
  if (replicas === 0) return { reply: await redis.runScript(script, keys, args), isConfirmed: true };
  const { reply, replicas: confirmed } = await redis.runScriptAndWait(script, keys, args, replicas);
  return { reply, isConfirmed: confirmed >= replicas };
}

/** What keys of one slot begin with. Braces hold our own bucket number only: nobody can choose a slot. */
export function slotOf(prefix: string, records: 'tags' | 'tokens', bucket: number): string {
  return `${prefix}:{${records}-${bucket}}`;
}

/** Digests are spread evenly by their first characters. */
export function bucketOf(digest: string, buckets: number): number {
  return buckets === 1 ? 0 : Number.parseInt(digest.slice(0, 8), 16) % buckets;
}

/** Names a Lua script; `name` is for people only. */
export function defineScript(name: string, lua: string): RedisScript {
  return { name, lua, sha1: hash('sha1', lua, 'hex'), isClaim: false };
}

/** Microseconds of the server's clock are the last argument; the script proper never sees it. */
const refuseWhenLate = `
do
  local deadline, time = tonumber(table.remove(ARGV)), redis.call('TIME')
  local now = time[1] * 1000000 + time[2]
  if now > deadline then return redis.error_reply('LATE ' .. string.format('%.0f', now)) end
end
`;

/**
 * Names a script that takes something for its caller (a lease, an exchange). It is sent with its caller's deadline in the
 * time of the server that runs it, and when it is late it changes nothing: whoever was answered 503 does not hold
 * anything afterwards. docs/decisions/store-calls.md.
 */
export function defineClaim(name: string, lua: string): RedisScript {
  return { ...defineScript(name, refuseWhenLate + lua), isClaim: true };
}
