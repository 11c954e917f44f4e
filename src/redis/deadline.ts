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

/** Made here, not with the timer: an error and its stack cost as much as the rest of a call. */
function rejectAsLate(reject: (fault: RedisUnavailable) => void): void {
  reject(new RedisUnavailable('timeout'));
}
