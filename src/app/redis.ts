import { readFileSync } from 'node:fs';
import type { Config } from '../config/schema.ts';
import type { RedisTlsOptions } from '../redis/clients.ts';
import { connectRedis } from '../redis/connect-redis.ts';
import { type Redis, RedisUnavailable } from '../redis/redis.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { Part } from './part.ts';

export interface RedisPart extends Part {
  readonly redis: Redis;
  /** Calls back whenever Redis has become usable. */
  onReady(listener: () => void): void;
}

/** Longest wait for Redis at start; it may come later. */
const startWaitMs = 2_000;
const evictingText = 'the Redis of store.url may throw records away: its maxmemory-policy must be noeviction';

/** The one connection that all features share. Throws for a malformed address only; connecting goes on by itself. */
export function openRedis({ store }: Pick<Config, 'store'>, log: Log, metrics: Metrics): RedisPart {
  if (store.url.kind === 'memory') throw new TypeError('store.url names no Redis');
  const listeners: (() => void)[] = [];
  const redis = connectRedis({
    url: store.url,
    timeoutMs: store.timeout,
    ...(store.tls && { tls: readTls(store.tls) }),
    ...(store.sentinelPassword !== undefined && { sentinelPassword: store.sentinelPassword }),
    onState: ({ status, word }) => {
      if (status === 'ready') for (const listener of listeners) listener();
      const level = status === 'away' ? 'error' : 'info';
      log[level]({ event: 'store', status, word }, `Redis is ${status}`);
    },
  });
  metrics.registerGauge({
    name: 'shopward_store_up',
    help: 'Whether Redis can be used.',
    value: () => (redis.state().status === 'ready' ? 1 : 0),
    together: 'min',
  });
  return {
    redis,
    onReady: (listener) => void listeners.push(listener),
    async start() {
      // Rejects for an evicting policy only: locks that vanish under memory pressure are worse than none.
      const isReached = await redis.ready(startWaitMs).catch((fault: unknown) => {
        throw isEvicting(fault) ? new Error(evictingText, { cause: fault }) : fault;
      });
      if (!isReached) log.error({ event: 'store' }, 'Redis is not reached yet; going on without');
    },
    reasons() {
      const { status, word } = redis.state();
      return status === 'ready' ? [] : [`Redis is ${status}${word === undefined ? '' : `: ${word}`}`];
    },
    close: () => redis.close(),
  };
}

function isEvicting(fault: unknown): boolean {
  return fault instanceof RedisUnavailable && fault.word === 'evicting';
}

function readTls(files: NonNullable<Config['store']['tls']>): RedisTlsOptions {
  const read = (file: string | undefined) => (file === undefined ? undefined : readFileSync(file));
  const { ca, cert, key } = { ca: read(files.ca), cert: read(files.cert), key: read(files.key) };
  return { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) };
}
