import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/** What a connection is needed for, least first: nothing, an answer that anybody gets, an operator's request. */
const needs = ['idle', 'answering', 'operator'] as const;
type Need = (typeof needs)[number];

interface Held {
  readonly address: string;
  need: Need;
}

export interface AdminConnections {
  /** The request under way on a connection is one that only an operator may make. */
  isOperators(socket: Socket): void;
}

/**
 * Bounds the connections of the admin port so that a new one always finds a place: a probe is a new connection, and
 * whoever sends nothing must not keep it out. Where `most` are open, one makes room: of those needed least, one of the
 * address that has most of them, the oldest first.
 */
export function boundConnections(server: Server, most: number): AdminConnections {
  /** The oldest first. */
  const all = new Map<Socket, Held>();

  server.on('connection', (socket: Socket) => {
    if (all.size >= most) {
      const last = leastNeeded(all);
      if (last !== undefined) {
        all.delete(last);
        last.destroy();
      }
    }
    all.set(socket, { address: socket.remoteAddress ?? '', need: 'idle' });
    socket.once('close', () => all.delete(socket));
  });
  server.on('request', ({ socket }, response) => {
    const held = all.get(socket);
    if (held === undefined) return;
    held.need = 'answering';
    response.once('close', () => {
      held.need = 'idle';
    });
  });
  return {
    isOperators(socket) {
      const held = all.get(socket);
      if (held !== undefined) held.need = 'operator';
    },
  };
}

function leastNeeded(all: ReadonlyMap<Socket, Held>): Socket | undefined {
  for (const need of needs) {
    const counts = new Map<string, number>();
    for (const held of all.values()) {
      if (held.need === need) counts.set(held.address, (counts.get(held.address) ?? 0) + 1);
    }
    const most = Math.max(0, ...counts.values());
    for (const [socket, held] of all) {
      if (held.need === need && counts.get(held.address) === most) return socket;
    }
  }
  return undefined;
}
