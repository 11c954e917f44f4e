import { mappingTtlMs } from './fault-row.ts';

/**
 * Short times, so that much happens within a minute, but only a fault exceeds them, not a machine that stalls. `lease` is how
 * long a write with an unknown outcome blocks its cart.
 */
export function shopwardSettings(redisUrl: string, store: object = {}): object {
  return {
    store: { url: redisUrl, timeout: '2s', ...store },
    upstream: { responseTimeout: '4s', connectTimeout: '4s' },
    entityTags: { lease: '8s', sendBy: '3s', wait: '5s' },
    urlResolver: { ttl: `${mappingTtlMs}ms`, staleWhileRevalidate: '0s' },
    limits: { trackedResponse: '64KiB' },
    log: { level: 'warn' },
  };
}
