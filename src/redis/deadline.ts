import { setTimeout as sleep } from 'node:timers/promises';
import { toRedisFault } from './faults.ts';
import { RedisUnavailable } from './redis.ts';

/**
 * Settles as `call` does, or after `timeoutMs` with `RedisUnavailable('timeout')`: ioredis 6.0.0 may leave a promise
 * unsettled for ever when a connection breaks and re-sending is off (https://github.com/redis/ioredis/issues/2193).
 */
export function withinDeadline<T>(call: () => Promise<T>, timeoutMs: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(rejectAsLate, timeoutMs, reject);
    const fail = (error: unknown) => {
      clearTimeout(timer);
      reject(toRedisFault(error));
    };
    try {
      call().then((reply) => {
        clearTimeout(timer);
        resolve(reply);
      }, fail);
    } catch (error) {
      fail(error);
    }
  });
}

/**
 * Resolves when the claim that `fault` ended can take no effect any more: then it may be given back, and not before, or
 * the give-back could overtake it. `false`: it took no effect and never will. A fault that is not Redis's says nothing.
 */
export async function mayHoldAfter(fault: unknown): Promise<boolean> {
  if (!(fault instanceof RedisUnavailable)) return true;
  const { mayTakeEffectUntilMs } = fault;
  if (mayTakeEffectUntilMs === undefined) return false;
  // Timers know whole milliseconds only, and begin before they are asked.
  await sleep(Math.max(0, Math.ceil(mayTakeEffectUntilMs - performance.now()) + 1));
  return true;
}

/** Made here, not with the timer: an error and its stack cost as much as the rest of a call. */
function rejectAsLate(reject: (fault: RedisUnavailable) => void): void {
  reject(new RedisUnavailable('timeout'));
}
