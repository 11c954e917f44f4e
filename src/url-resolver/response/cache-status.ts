/**
 * Values of `Cache-Status` (RFC 9211). `hit` without more: given from what this process holds. `ttl` is what is left of
 * the mapping's freshness, in seconds, negative once it is stale.
 */
export const cacheStatus = {
  hit: (ttlSeconds: number) => `shopward; hit; ttl=${ttlSeconds}`,
  /** From the copy that replicas share. */
  shared: (ttlSeconds: number) => `shopward; hit; ttl=${ttlSeconds}; detail=shared`,
  /** A stale copy, while the source is asked or cannot be. */
  stale: (ttlSeconds: number, why: 'revalidating' | 'error') =>
    `shopward; hit; ttl=${ttlSeconds}; detail=${why}`,
  mappingFile: 'shopward; hit; detail=mapping-file',
  /** The source was asked, and its answer kept; `collapsed`: the question was under way for another request. */
  stored: (fwd: 'miss' | 'stale', ttlSeconds: number, collapsed: boolean) =>
    `shopward; fwd=${fwd}; stored; ttl=${ttlSeconds}${collapsed ? '; collapsed' : ''}`,
  /** The source was asked; its answer is not kept. */
  notStored: (fwd: 'miss' | 'stale' | 'bypass', collapsed: boolean) =>
    `shopward; fwd=${fwd}${collapsed ? '; collapsed' : ''}`,
  /** Answered without asking anybody: the value cannot be a URL of the shop. */
  unasked: 'shopward; detail=unasked',
} as const;
