import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders, Server } from 'node:http';
import { isIP, type Socket } from 'node:net';

export interface AdmissionOptions {
  /** Address that the port is bound to. */
  readonly host: string;
  /** Required unless the address is a loopback one: `Authorization: Bearer <token>` for all but /livez and /readyz. */
  readonly token?: string | undefined;
  /**
   * Host names, besides loopback's own, by which the port may be addressed (against DNS rebinding, which needs a name:
   * with a token, any bare address will do, as scrapers of metrics use it).
   */
  readonly hosts: readonly string[];
}

/** Who may ask what of the admin port; each answer is yes or no, from the fields of a request alone. */
export interface Admission {
  /** Another token in place of the one so far. */
  useToken(token: string): void;
  hasToken(fields: IncomingHttpHeaders): boolean;
  /** A page whose name was pointed at this address by its owner still says that name in `Host`. */
  isKnownHost(fields: IncomingHttpHeaders): boolean;
  /** Browsers name the origin of a write; a page of another one must not command this port. */
  isSameOrigin(fields: IncomingHttpHeaders): boolean;
}

export function createAdmission({ host, token, hosts }: AdmissionOptions): Admission {
  let expected = token === undefined ? undefined : digest(token);
  const names = new Set(['localhost', '127.0.0.1', '[::1]', ...[host, ...hosts].map(hostName)]);
  return {
    useToken(next) {
      expected = digest(next);
    },
    hasToken({ authorization = '' }) {
      if (expected === undefined) return true;
      const given = /^bearer +(\S+)$/i.exec(authorization)?.[1] ?? '';
      // Digests have one length, so that comparing takes one time whatever was sent.
      return timingSafeEqual(digest(given), expected);
    },
    isKnownHost(fields) {
      const name = hostName((fields.host ?? '').replace(/:\d*$/, ''));
      return names.has(name) || (expected !== undefined && isIP(name.replace(/^\[|\]$/g, '')) > 0);
    },
    isSameOrigin(fields) {
      const { origin, host: authority } = fields;
      const site = fields['sec-fetch-site'];
      if (site !== undefined && site !== 'same-origin' && site !== 'none') return false;
      return origin === undefined || origin === `http://${authority}` || origin === `https://${authority}`;
    },
  };
}

/** As `Host` spells it: lower case, an IPv6 address in brackets. */
function hostName(name: string): string {
  const lower = name.toLowerCase();
  return lower.includes(':') && !lower.startsWith('[') ? `[${lower}]` : lower;
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** What a connection is needed for, least first: nothing, an answer that anybody gets, an operator's request. */
const needs = ['idle', 'answering', 'operator'] as const;
type Need = (typeof needs)[number];

interface Held {
  readonly address: string;
  need: Need;
}

interface AdminConnections {
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
    let most = 0;
    for (const count of counts.values()) most = Math.max(most, count);
    for (const [socket, held] of all) {
      if (held.need === need && counts.get(held.address) === most) return socket;
    }
  }
  return undefined;
}
