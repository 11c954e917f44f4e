import type { Socket } from 'node:net';
import { isolated } from '../lib/faults.ts';
import { networkOf, type SharedLimit, Shares } from './in-flight.ts';

interface ConnectionPlacesOptions extends SharedLimit {
  /** Whether a peer speaks for many clients, so that the share does not apply to it. */
  isTrusted(address: string): boolean;
}

/** Connections for which there was no place, since the start. */
interface ConnectionCounts {
  /** Closed between two requests, or before the first one, to make room. */
  evicted: number;
  /** Not accepted: each place belonged to a request in progress. */
  refused: number;
  /** Not accepted: the peer had its share. */
  refusedOfPeer: number;
}

/**
 * The places of a listener's connections. If all are taken, the connection that has been idle the longest is closed to
 * make room, so that silent connections keep nobody out. A connection with a request in progress is never closed.
 */
export class ConnectionPlaces {
  readonly counts: ConnectionCounts = { evicted: 0, refused: 0, refusedOfPeer: 0 };
  readonly limit: number;
  /** `performance.now()` of the last time that there was no place. */
  lastFullMs = Number.NEGATIVE_INFINITY;
  /** Called each time that there was no place, or that a peer had its share. */
  onShort: (() => void) | undefined;
  readonly #options: ConnectionPlacesOptions;
  readonly #peers: Shares;
  /** The longest idle first, by address and port of the peer, which a TLS socket shares with the TCP socket below it. */
  readonly #idle = new Map<string, Socket>();
  #open = 0;

  constructor(options: ConnectionPlacesOptions) {
    this.#options = options;
    this.limit = options.limit;
    this.#peers = new Shares(options);
  }

  get open(): number {
    return this.#open;
  }

  /** Whether a connection that was just accepted may stay; otherwise it has been destroyed. */
  admit(socket: Socket): boolean {
    const address = socket.remoteAddress ?? '';
    const peer = this.#peers.areBounded && !this.#options.isTrusted(address) ? networkOf(address) : undefined;
    const share = peer === undefined ? undefined : this.#peers.take(peer);
    if (peer !== undefined && share === undefined) return this.#refuse(socket, 'refusedOfPeer');
    if (this.#open >= this.limit && !this.#evict()) {
      if (share !== undefined) this.#peers.giveBack(share);
      return this.#refuse(socket, 'refused');
    }
    this.#open += 1;
    const end = endOf(socket);
    this.#idle.set(end, socket);
    const leave = () => {
      this.#open -= 1;
      this.#idle.delete(end);
      if (share !== undefined) this.#peers.giveBack(share);
    };
    socket.once('close', isolated(leave));
    return true;
  }

  #refuse(socket: Socket, why: 'refused' | 'refusedOfPeer'): false {
    this.counts[why] += 1;
    socket.destroy();
    this.onShort?.();
    return false;
  }

  /** The connection has a request in progress, or must not be closed to make room any more. */
  busy(socket: Socket): void {
    this.#idle.delete(endOf(socket));
  }

  /** It waits for a request. */
  idle(socket: Socket): void {
    if (!socket.destroyed) this.#idle.set(endOf(socket), socket);
  }

  /** Closes the connection that has been idle the longest; `false`: none is idle. */
  #evict(): boolean {
    this.lastFullMs = performance.now();
    for (const [end, socket] of this.#idle) {
      this.#idle.delete(end);
      if (socket.destroyed) continue;
      this.counts.evicted += 1;
      socket.destroy();
      this.onShort?.();
      return true;
    }
    return false;
  }
}

/** Made once for a socket, since each request asks for it twice. */
const ends = new WeakMap<Socket, string>();

function endOf(socket: Socket): string {
  let end = ends.get(socket);
  if (end === undefined) {
    end = `${socket.remoteAddress} ${socket.remotePort}`;
    ends.set(socket, end);
  }
  return end;
}
