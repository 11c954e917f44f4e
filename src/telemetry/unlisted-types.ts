import type { ExchangeRecord } from './exchange-record.ts';

/** Names resource types that the shop protects and the list does not: bounded, so that no client can add series. */
interface UnlistedTypes {
  /** Undefined for an exchange that is no such drift. */
  find(
    record: Pick<ExchangeRecord, 'route' | 'decision' | 'method' | 'status' | 'path' | 'clientAddress'>,
  ): string | undefined;
}

/** More types than a shop has; what has no place is `other`. */
const defaultMaxTypes = 50;
/** Clients that are told apart for one type. */
const maxClients = 8;
const typeShape = /^\/([a-z][a-z-]{0,63})(?:\/|$)/i;

/**
 * Paths are invented at no cost, clients are not: where there is no place left, the type that the fewest clients were
 * refused at makes room, so that one client cannot hide what many meet. `onForgotten` hears of it.
 */
export function createUnlistedTypes(
  maxTypes = defaultMaxTypes,
  onForgotten: (type: string) => void = () => {},
): UnlistedTypes {
  const clientsOf = new Map<string, Set<string>>();

  const makeRoom = (): boolean => {
    let least: string | undefined;
    for (const [type, clients] of clientsOf) if (clients.size === 1) least ??= type;
    if (least === undefined) return false;
    clientsOf.delete(least);
    onForgotten(least);
    return true;
  };

  return {
    find({ route, decision, method, status, path, clientAddress }) {
      if (status !== 401 && status !== 403) return undefined;
      if (route !== '*' || decision !== 'forwarded' || method === 'OPTIONS') return undefined;
      const type = typeShape.exec(path)?.[1]?.toLowerCase();
      if (type === undefined) return 'other';
      const clients = clientsOf.get(type);
      if (clients !== undefined) {
        if (clients.size < maxClients) clients.add(clientAddress);
        return type;
      }
      if (clientsOf.size >= maxTypes && !makeRoom()) return 'other';
      clientsOf.set(type, new Set([clientAddress]));
      return type;
    },
  };
}
