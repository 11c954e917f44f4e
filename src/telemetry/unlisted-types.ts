import type { ExchangeRecord } from './exchange-record.ts';

/** Names resource types that the shop protects and the list does not: bounded, so that no client can add series. */
export interface UnlistedTypes {
  /** Undefined for an exchange that is no such drift. */
  find(record: Pick<ExchangeRecord, 'route' | 'decision' | 'method' | 'status' | 'path'>): string | undefined;
}

/** More types than a shop has; what comes later is `other`. */
const defaultMaxTypes = 50;
const typeShape = /^\/([a-z][a-z-]{0,63})(?:\/|$)/i;

export function createUnlistedTypes(maxTypes = defaultMaxTypes): UnlistedTypes {
  const known = new Set<string>();
  return {
    find({ route, decision, method, status, path }) {
      if (status !== 401 && status !== 403) return undefined;
      if (route !== '*' || decision !== 'forwarded' || method === 'OPTIONS') return undefined;
      const type = typeShape.exec(path)?.[1]?.toLowerCase();
      if (type === undefined) return 'other';
      if (!known.has(type)) {
        if (known.size >= maxTypes) return 'other';
        known.add(type);
      }
      return type;
    },
  };
}
