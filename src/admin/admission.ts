import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders, Server, ServerResponse } from 'node:http';
import { isIP, type Socket } from 'node:net';

export interface AdmissionOptions {
  /** Address that the port is bound to. */
  readonly host: string;
  /**
   * If set, all but `/livez`, `/readyz` and the files of the console need `Authorization: Bearer <token>`. May be left out
   * only if `host` is a loopback address.
   */
  readonly token?: string | undefined;
  /**
   * Names that `Host` may contain besides loopback's, against DNS rebinding. Rebinding needs a name, so if a token is set,
   * any IP address is accepted too: scrapers often use one.
   */
  readonly hosts: readonly string[];
}

/** Decides by the header fields of a request whether the admin port serves it. */
export function createAdmission({ host, token, hosts }: AdmissionOptions) {
  let expected = token === undefined ? undefined : digest(token);
  const names = new Set(['localhost', '127.0.0.1', '[::1]', ...[host, ...hosts].map(hostName)]);
  return {
    /** Replaces the token; the old one is refused from then on. */
    useToken(next: string): void {
      expected = digest(next);
    },
    hasToken({ authorization = '' }: IncomingHttpHeaders): boolean {
      if (expected === undefined) return true;
      const given = /^bearer +(\S+)$/i.exec(authorization)?.[1] ?? '';
      // `timingSafeEqual` needs equal lengths. Digests have equal lengths, and hide the length of the token.
      return timingSafeEqual(digest(given), expected);
    },
    /** Against DNS rebinding: an attacker's page whose name resolves to this address still sends that name in `Host`. */
    isKnownHost(fields: IncomingHttpHeaders): boolean {
      const name = hostName((fields.host ?? '').replace(/:\d*$/, ''));
      return names.has(name) || (expected !== undefined && isIP(name.replace(/^\[|\]$/g, '')) > 0);
    },
    /** Against cross-site request forgery: browsers name the origin of the page that sends a request. */
    isSameOrigin(fields: IncomingHttpHeaders): boolean {
      const { origin, host: authority } = fields;
      const site = fields['sec-fetch-site'];
      if (site !== undefined && site !== 'same-origin' && site !== 'none') return false;
      return origin === undefined || origin === `http://${authority}` || origin === `https://${authority}`;
    },
  };
}

export type Admission = ReturnType<typeof createAdmission>;

/** In the spelling of `Host`: lower case, an IPv6 address in brackets. */
function hostName(name: string): string {
  const lower = name.toLowerCase();
  return lower.includes(':') && !lower.startsWith('[') ? `[${lower}]` : lower;
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/**
 * Bounds the connections of the admin port, and still accepts every new one: a probe opens a new connection, and clients with
 * idle connections must not block it. If `most` are open, a new one closes the oldest connection of the address with the most
 * connections. Those that wait for an answer to a request with a checked token are closed last: the result is called with each.
 */
export function boundConnections(server: Server, most: number) {
  /** Open connections, the oldest first, with the address of the peer. */
  const all = new Map<Socket, string>();
  const operators = new Set<Socket>();

  server.on('connection', (socket: Socket) => {
    if (all.size >= most) {
      const expendable = findExpendable(all, operators);
      if (expendable !== undefined) {
        all.delete(expendable);
        expendable.destroy();
      }
    }
    all.set(socket, socket.remoteAddress ?? '');
    socket.once('close', () => all.delete(socket));
  });
  return (socket: Socket, response: ServerResponse): void => {
    operators.add(socket);
    response.once('close', () => operators.delete(socket));
  };
}

function findExpendable(all: ReadonlyMap<Socket, string>, operators: ReadonlySet<Socket>) {
  const counts = new Map<string, number>();
  for (const [socket, address] of all)
    if (!operators.has(socket)) counts.set(address, (counts.get(address) ?? 0) + 1);
  let most = 0;
  for (const count of counts.values()) most = Math.max(most, count);
  for (const [socket, address] of all)
    if (most === 0 || (!operators.has(socket) && counts.get(address) === most)) return socket;
  return undefined;
}
