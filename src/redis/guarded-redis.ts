import { type Redis, type RedisFaultWord, RedisUnavailable } from './redis.ts';

/** The same store for one feature, which may not use it while `refusal` gives a word. */
export function guardRedis(redis: Redis, refusal: () => RedisFaultWord | undefined): Redis {
  const guard = <Args extends unknown[], T>(call: (...args: Args) => Promise<T>) =>
    ((...args) => {
      const word = refusal();
      return word === undefined ? call(...args) : Promise.reject(new RedisUnavailable(word));
    }) as (...args: Args) => Promise<T>;
  return {
    kind: redis.kind,
    command: guard(redis.command.bind(redis)),
    runScript: guard(redis.runScript.bind(redis)),
    runScriptAndWait: guard(redis.runScriptAndWait.bind(redis)),
    subscribe: redis.subscribe.bind(redis),
    status: redis.status.bind(redis),
    state: redis.state.bind(redis),
    ready: redis.ready.bind(redis),
    close: redis.close.bind(redis),
  };
}
