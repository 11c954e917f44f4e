import type { EngineOptions, UpstreamEngine } from '../engine.ts';
import { UndiciClientPool } from './client-pool.ts';
import { UndiciExchange } from './exchange.ts';

/** Upstream requests through undici's `dispatch`: the cheaper engine, with the same behaviour. */
export function createUndiciEngine(options: EngineOptions): UpstreamEngine {
  const pool = new UndiciClientPool(options);
  return {
    dispatch(request, handler) {
      const exchange = new UndiciExchange(request, handler, pool);
      try {
        exchange.start();
      } catch (error) {
        exchange.onResponseError(null, error as Error);
      }
      return exchange;
    },
    close: () => pool.close(),
  };
}
