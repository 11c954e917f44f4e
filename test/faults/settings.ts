import { mappingTtlMs } from './fault-row.ts';

/** Short times, so that much happens within a minute; `lease` is how long an unknown write holds its cart. */
export function shopwardSettings(redisUrl: string, store: object = {}): object {
  return {
    store: { url: redisUrl, timeout: '200ms', ...store },
    upstream: { responseTimeout: '1s', connectTimeout: '1s' },
    entityTags: { lease: '2s', sendBy: '400ms', wait: '500ms' },
    urlResolver: { ttl: `${mappingTtlMs}ms`, staleWhileRevalidate: '0s' },
    log: { level: 'warn' },
  };
}
