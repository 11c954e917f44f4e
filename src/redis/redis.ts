import { hash } from 'node:crypto';
import type { Health } from './store-health.ts';

/**
 * The port to Redis, the same for a single node, a Cluster and Sentinels. Each call ends within the deadline of the
 * connection: with the reply, or with `RedisUnavailable`. Nothing is queued while Redis is away, and nothing that may have
 * been executed is sent again.
 */
export interface Redis {
  readonly kind: 'single' | 'cluster' | 'sentinel';
  /** One command, on the node of its keys. Rejects with `RedisUnavailable` only. */
  command(name: string, ...args: readonly RedisArgument[]): Promise<unknown>;
  /** One script; on a Cluster all keys must be of one slot. Rejects with `RedisUnavailable` only. */
  runScript(script: RedisScript, keys: readonly string[], args: readonly RedisArgument[]): Promise<unknown>;
  /**
   * As `runScript`, for a claim: it takes effect before its deadline, or never. If there is no reply, the fault has this
   * deadline. `replicas` above 0: `WAIT` for so many follows, on a connection only for such claims.
   */
  runClaim(
    claim: ClaimScript,
    keys: readonly string[],
    args: readonly RedisArgument[],
    replicas: number,
  ): Promise<ClaimReply>;
  /** Whether it can be used, for health and metrics; never asks the server. */
  state(): Health;
  /** Replicas, claims and memory, for health and metrics; never asks the server. */
  status(): RedisStatus;
  /**
   * Waits until Redis was reached once and its eviction policy has been checked, at most `withinMs`. `false`: not
   * reached yet, connecting goes on. Throws `RedisUnavailable` with the word `evicting` when the policy may evict.
   */
  ready(withinMs: number): Promise<boolean>;
  close(): Promise<void>;
}

/** The calls that features use. */
export type RedisCalls = Pick<Redis, 'kind' | 'command' | 'runScript' | 'runClaim'>;

export type RedisArgument = string | number | Buffer;

/** A Lua script and the SHA-1 that Redis knows it by. */
interface Script<IsClaim extends boolean> {
  readonly name: string;
  readonly lua: string;
  readonly sha1: string;
  /** Made by `defineClaim`: it refuses itself when it is late. */
  readonly isClaim: IsClaim;
  /**
   * The caller gathers all operations of a tick of the event loop into one call at its end. Keys: one of the slot, then one
   * for each operation. Default: false.
   */
  readonly isGathered?: boolean;
}

export type RedisScript = Script<false>;
export type ClaimScript = Script<true>;

export interface ClaimReply {
  readonly reply: unknown;
  /** How many replicas have what the claim wrote; 0 where none was asked. */
  readonly replicas: number;
}

export interface RedisStatus {
  /** Whether the replicas confirm; undefined: `store.replicas` is 0. */
  readonly replication: Health | undefined;
  readonly claims: {
    readonly made: number;
    readonly totalMs: number;
    /** Claims that fewer replicas confirmed than were asked. */
    readonly unconfirmed: number;
    /** How many replicas confirmed the last one; undefined: none was asked. */
    readonly lastConfirmed: number | undefined;
  };
  /** Undefined before the first reply. */
  readonly facts: ServerFacts | undefined;
}

/** The last answers of the servers to INFO. */
export interface ServerFacts {
  /** A `maxmemory-policy` that evicts records, if a server has one. A lease that is evicted lets two writers in. */
  readonly evictingPolicy: string | undefined;
  /** Of the fullest node; `maxBytes` 0: it has no limit. */
  readonly memory: { readonly usedBytes: number; readonly maxBytes: number };
  /** Replicas that have acknowledged within the last seconds; of the node with the fewest. */
  readonly connectedReplicas: number;
  /** A server's time, and the time of the request (milliseconds since the epoch). */
  readonly timeMs: number | undefined;
  readonly askedMs: number;
  /** `master_replid`: the history of the data. */
  readonly replicationIds: string;
}

/** Where a feature keeps its records in Redis. */
export interface RedisRecords {
  readonly redis: RedisCalls;
  /** The beginning of every key; deployments that share a Redis need different ones. Default `shopward`. */
  readonly keyPrefix?: string;
  /**
   * How many replicas have to confirm a claim before it counts: as many as could be promoted. Default 0: a failover may then
   * lose a claim that was granted.
   */
  readonly replicas?: number;
}

/**
 * The beginning of the keys of one slot. The braces, which decide on it, contain only the kind and a bucket's number:
 * no client can choose a slot.
 */
export function slotOf(prefix: string, records: 'tags' | 'tokens', bucket: number): string {
  return `${prefix}:{${records}-${bucket}}`;
}

/** The bucket of a hexadecimal digest, by its first 32 bits. */
export function bucketOf(digest: string, buckets: number): number {
  return buckets === 1 ? 0 : Number.parseInt(digest.slice(0, 8), 16) % buckets;
}

/** Defines a Lua script; `name` is for people. */
export function defineScript(name: string, lua: string): RedisScript {
  return { name, lua, sha1: hash('sha1', lua, 'hex'), isClaim: false };
}

/** Takes the deadline, microseconds of the server's clock, off the end of the arguments. */
const refuseWhenLate = `
do
  local deadline, time = tonumber(table.remove(ARGV)), redis.call('TIME')
  local now = time[1] * 1000000 + time[2]
  if now > deadline then return redis.error_reply('LATE ' .. string.format('%.0f', now)) end
end
`;

/**
 * Defines a script that takes something for its caller (a lease, a refresh). It is sent with the caller's deadline in the time
 * of the server that runs it, and changes nothing when it is late: a caller that was answered 503 has taken nothing.
 * docs/decisions/store-calls.md.
 */
export function defineClaim(name: string, lua: string): ClaimScript {
  return { ...defineScript(name, refuseWhenLate + lua), isClaim: true };
}
