import type { ExchangeRecord } from './exchange-record.ts';

/** Resource types that the shop protects and the list does not; bounded, so that no client can add series. */
interface UnlistedTypes {
  /** The type, if the shop refused an exchange that no row matches; `other` where there are too many. */
  find(
    record: Pick<ExchangeRecord, 'route' | 'decision' | 'method' | 'status' | 'path' | 'clientAddress'>,
  ): string | undefined;
}

/** More types than a shop has; further ones are `other`. */
const defaultMaxTypes = 50;
/** Clients that are counted for each type. */
const maxClients = 8;
const typeShape = /^\/([a-z][a-z-]{0,63})(?:\/|$)/i;

/**
 * Any client can invent paths, but not other clients: a new type replaces one at which a single client was refused, so that
 * one client cannot hide what many are refused. `onForgotten` is called with the replaced type.
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
