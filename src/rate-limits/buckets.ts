import { LRUCache } from 'lru-cache';
import { defineScript, type Redis, type RedisScript } from '../redis/redis.ts';

export interface Rate {
  readonly requests: number;
  readonly perMs: number;
}

/** The result of asking a bucket for a token; times in microseconds. */
export interface Taken {
  readonly isAllowed: boolean;
  readonly remaining: number;
  /** Time until the next token if refused; else until the bucket is full. */
  readonly waitUs: number;
}

/** Takes a token from the bucket of this name. Rejects if the store does not answer. */
export type TakeToken = (bucket: string, rate: Rate) => Taken | Promise<Taken>;

/** Microseconds until one token comes back; rounded up, so that clients never get more than the limit. */
function costOf({ requests, perMs }: Rate): number {
  return Math.ceil((perMs * 1000) / requests);
}

/**
 * One step of a bucket, which is stored as the time when it will be full: docs/decisions/rate-limits.md. `fullAtUs`: 0 if
 * nothing is stored; undefined in the result: nothing changes. Exported for its tests.
 */
export function takeToken(
  fullAtUs: number,
  nowUs: number,
  rate: Rate,
): Taken & { readonly fullAtUs: number | undefined } {
  const cost = costOf(rate);
  const size = cost * rate.requests;
  // A bucket cannot lack more than all its tokens: the clock was set back.
  const isAhead = fullAtUs > nowUs + size;
  const from = isAhead ? nowUs + size : Math.max(fullAtUs, nowUs);
  const next = from + cost;
  if (next - nowUs > size) {
    const waitUs = next - size - nowUs;
    return { isAllowed: false, remaining: 0, waitUs, fullAtUs: isAhead ? from : undefined };
  }
  const remaining = Math.floor((size - (next - nowUs)) / cost);
  return { isAllowed: true, remaining, waitUs: next - nowUs, fullAtUs: next };
}

/** The same step in Redis, by its clock. KEYS: the bucket; ARGV: cost and number of tokens. Exported for its tests. */
export const takeTokenScript = defineScript(
  'take-token',
  `
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local cost, requests = tonumber(ARGV[1]), tonumber(ARGV[2])
local size = cost * requests
local full_at = tonumber(redis.call('GET', KEYS[1]) or '0')
local function keep(time)
  redis.call('SET', KEYS[1], string.format('%.0f', time), 'PX', math.ceil((time - now) / 1000))
end
-- More than a whole bucket cannot be missing: somebody has set the clock back.
if full_at > now + size then
  full_at = now + size
  keep(full_at)
end
local next = math.max(full_at, now) + cost
if next - now > size then
  return {0, 0, next - size - now}
end
keep(next)
return {1, math.floor((size - (next - now)) / cost), next - now}
`,
);

export function createRedisBuckets(
  redis: Pick<Redis, 'runScript'>,
  keyPrefix: string,
  script: RedisScript = takeTokenScript,
): TakeToken {
  return async (bucket, rate) => {
    const args = [costOf(rate), rate.requests];
    const reply = await redis.runScript(script, [`${keyPrefix}:rate:${bucket}`], args);
    const [isAllowed, remaining, waitUs] = reply as [number, number, number];
    return { isAllowed: isAllowed === 1, remaining, waitUs };
  };
}

/** Buckets of one process, 100 bytes each. Given as a size, since `max` would allocate all of them at the start. */
const maxBuckets = { maxSize: 50_000, sizeCalculation: () => 1 };

/** `nowUs`: the clock; default: the monotonic clock of the process. */
export function createMemoryBuckets(nowUs = () => Math.round(performance.now() * 1000)): TakeToken {
  const fullAt = new LRUCache<string, number>(maxBuckets);
  return (bucket, rate) => {
    const { fullAtUs, ...taken } = takeToken(fullAt.get(bucket) ?? 0, nowUs(), rate);
    if (fullAtUs !== undefined) fullAt.set(bucket, fullAtUs);
    return taken;
  };
}
