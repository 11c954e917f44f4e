import { mappingTtlMs } from './fault-row.ts';

/**
 * Short times, so that much happens within a minute, but long enough for a busy machine. `lease`
 * is how long a write with an unknown outcome blocks its cart.
 */
export function shopwardSettings(redisUrl: string, store: object = {}): object {
  return {
    store: { url: redisUrl, timeout: '400ms', ...store },
    upstream: { responseTimeout: '1500ms', connectTimeout: '1500ms' },
    entityTags: { lease: '3s', sendBy: '1s', wait: '500ms' },
    urlResolver: { ttl: `${mappingTtlMs}ms`, staleWhileRevalidate: '0s' },
    limits: { trackedResponse: '64KiB' },
    log: { level: 'warn' },
  };
}
