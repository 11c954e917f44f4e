import { toRedisFault } from './faults.ts';
import { RedisUnavailable } from './redis.ts';

/**
 * Settles as `call` does, or after `timeoutMs` with `RedisUnavailable('timeout')`: ioredis 6.0.0 may leave a promise
 * unsettled for ever when a connection breaks and re-sending is off (https://github.com/redis/ioredis/issues/2193).
 */
export function withinDeadline<T>(call: () => Promise<T>, timeoutMs: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(reject, timeoutMs, new RedisUnavailable('timeout'));
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
