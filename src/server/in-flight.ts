import type { Socket } from 'node:net';
import { networkOf, plainAddress } from '../http/peer.ts';
import { reject } from '../http/rejection.ts';
import { type Linked, LinkedList, NamedEntries, shareOf } from '../lib/fair-queue.ts';
import { isolated } from '../lib/faults.ts';

/** Refuses a request of a client or subject that already has its share of requests in progress, also in observe mode. */
export const beyondShare = reject('overloaded', { reason: 'client-share', retryAfterSeconds: 1 });

interface SharedLimit {
  readonly limit: number;
  /** Percent of the limit that one client, one peer, or one subject of access tokens may use. */
  readonly sharePercent: number;
}

/**
 * The requests in progress, in total and by client. One client never uses more than its share, so the rest stays free for
 * others. A client is counted by its address (of IPv6 the network) and, once known, also by its subject: one token rarely
 * comes from many addresses, and many accounts are cheaper than many addresses.
 */
export class InFlight {
  /** Changed by `enter` and by the slots. */
  count = 0;
  readonly clients: Shares;
  readonly subjects: Shares;
  readonly #limit: number;

  constructor({ limit, sharePercent }: SharedLimit) {
    this.#limit = limit;
    const share = shareOf(limit, sharePercent);
    this.clients = new Shares(share);
    this.subjects = new Shares(share);
  }

  /** An entry for one more request, even beyond the limit: a refusal takes time, too. */
  enter(): Slot {
    this.count += 1;
    return new Slot(this, this.count > this.#limit);
  }
}

export class Slot {
  readonly isBeyond: boolean;
  readonly #inFlight: InFlight;
  #ofClient: Share | undefined;
  #ofSubject: Share | undefined;
  #isLeft = false;

  constructor(inFlight: InFlight, isBeyond: boolean) {
    this.#inFlight = inFlight;
    this.isBeyond = isBeyond;
  }

  /** Whether the client at this address may have one more request in progress. Call it once. */
  takeFor(clientAddress: string): boolean {
    const { clients } = this.#inFlight;
    if (!clients.areBounded) return true;
    this.#ofClient = clients.take(networkOf(clientAddress));
    return this.#ofClient !== undefined;
  }

  /** Whether the subject of an access token may have one more request in progress. Call it once. */
  takeForSubject(subject: string): boolean {
    const { subjects } = this.#inFlight;
    if (!subjects.areBounded) return true;
    this.#ofSubject = subjects.take(subject);
    return this.#ofSubject !== undefined;
  }

  /** The request is no longer in progress. Calls after the first one do nothing. */
  leave(): void {
    if (this.#isLeft) return;
    this.#isLeft = true;
    const { clients, subjects } = this.#inFlight;
    if (this.#ofClient !== undefined) clients.giveBack(this.#ofClient);
    if (this.#ofSubject !== undefined) subjects.giveBack(this.#ofSubject);
    this.#inFlight.count -= 1;
  }
}

/** The share of one client; `size`: its requests in progress. */
interface Share {
  size: number;
}

/** How many requests each client has and may have. Exported for its tests. */
export class Shares {
  readonly #max: number;
  readonly #shares = new NamedEntries<Share>(() => ({ size: 0 }));

  constructor(max: number) {
    this.#max = max;
  }

  get areBounded(): boolean {
    return this.#max !== Number.POSITIVE_INFINITY;
  }

  get size(): number {
    return this.#shares.size;
  }

  /** Takes one more request for `client`; undefined: the client has its share. The result must be given back once. */
  take(client: string): Share | undefined {
    const share = this.#shares.enter(client);
    if (share.size <= this.#max) return share;
    this.#shares.leave(share);
    return undefined;
  }

  giveBack(share: Share): void {
    this.#shares.leave(share);
  }
}

interface ConnectionSlotsOptions extends SharedLimit {
  /** Whether the share does not apply to a peer, because it forwards requests of many clients. */
  isTrusted(address: string): boolean;
}

/** An open connection; after a handshake, its TLS socket. Idle ones are in a list: a Map makes garbage for each request. */
export interface ConnectionSlot extends Linked<ConnectionSlot> {
  socket: Socket;
  /** While a TLS handshake is in progress. */
  handshake: Share | undefined;
}

/**
 * TLS handshakes that one peer may have in progress. Each takes a millisecond, and the octets of thousands of connections can
 * arrive in one tick of the event loop.
 */
const maxHandshakes = 64;
/** The same for all peers together, which takes two seconds with an RSA key of 4096 bits. Exported for its tests. */
export const maxHandshakesInAll = 512;
/** A handshake that has taken less time is not closed to make room: else none would end while many clients reconnect. */
const handshakeMs = 1_000;

/**
 * The connections of a listener. At the limit, the connection that has been idle longest is closed to make room, so that
 * silent connections do not block new clients. A connection with a request in progress is never closed.
 */
export class ConnectionSlots {
  /** Connections beyond the limit, since the start. */
  readonly counts = {
    /** Closed between two requests, or before the first one, to make room. */
    evicted: 0,
    /** Not accepted: all connections had a request in progress. */
    refused: 0,
    /** Not accepted: the peer had its share of connections or TLS handshakes. */
    refusedOfPeer: 0,
  };
  readonly limit: number;
  /** `performance.now()` of the last time that the limit was reached. */
  lastFullMs = Number.NEGATIVE_INFINITY;
  readonly #options: ConnectionSlotsOptions;
  readonly #peers: Shares;
  readonly #handshakes = new Shares(maxHandshakes);
  /** The start of each handshake in progress (`performance.now()`), the oldest first. */
  readonly #inHandshake = new Map<ConnectionSlot, number>();
  /** By both ports and the peer's address, which a TLS socket shares with its TCP socket. */
  readonly #slots = new Map<string, ConnectionSlot>();
  readonly #idle = new LinkedList<ConnectionSlot>();
  open = 0;

  constructor(options: ConnectionSlotsOptions) {
    this.#options = options;
    this.limit = options.limit;
    this.#peers = new Shares(shareOf(options.limit, options.sharePercent));
  }

  /** Whether a newly accepted connection may stay; otherwise it is destroyed. `isTls`: it begins with a handshake. */
  admit(socket: Socket, isTls = false): boolean {
    const address = plainAddress(socket.remoteAddress);
    const peer = this.#peers.areBounded && !this.#options.isTrusted(address) ? networkOf(address) : undefined;
    const share = peer === undefined ? undefined : this.#peers.take(peer);
    if (peer !== undefined && share === undefined) return this.#refuse(socket, 'refusedOfPeer');
    const isBounded = isTls && peer !== undefined;
    const handshake = isBounded && this.#makeHandshakeRoom() ? this.#handshakes.take(peer) : undefined;
    const isBeyond = isBounded && handshake === undefined;
    if (isBeyond || (this.open >= this.limit && !this.#evict())) {
      if (share !== undefined) this.#peers.giveBack(share);
      if (handshake !== undefined) this.#handshakes.giveBack(handshake);
      return this.#refuse(socket, isBeyond ? 'refusedOfPeer' : 'refused');
    }
    this.open += 1;
    const slot: ConnectionSlot = { socket, handshake, older: undefined, newer: undefined, list: undefined };
    const end = endOf(socket);
    this.#slots.set(end, slot);
    this.#idle.push(slot);
    if (handshake !== undefined) this.#inHandshake.set(slot, performance.now());
    const leave = () => {
      this.open -= 1;
      this.busy(slot);
      this.#endHandshake(slot);
      if (this.#slots.get(end) === slot) this.#slots.delete(end);
      if (share !== undefined) this.#peers.giveBack(share);
    };
    socket.once('close', isolated(leave));
    return true;
  }

  #refuse(socket: Socket, why: 'refused' | 'refusedOfPeer'): false {
    this.counts[why] += 1;
    socket.destroy();
    return false;
  }

  /** The slot of a connection that has ended its handshake, if it needed one. */
  slotOf(socket: Socket): ConnectionSlot | undefined {
    const slot = this.#slots.get(endOf(socket));
    if (slot !== undefined) {
      slot.socket = socket;
      this.#endHandshake(slot);
    }
    return slot;
  }

  /** Whether one more handshake may begin: the oldest one may have to end for it. */
  #makeHandshakeRoom(): boolean {
    const [oldest] = this.#inHandshake;
    if (oldest === undefined || this.#inHandshake.size < maxHandshakesInAll) return true;
    const [slot, startedMs] = oldest;
    if (performance.now() - startedMs < handshakeMs) return false;
    this.#inHandshake.delete(slot);
    this.counts.evicted += 1;
    slot.socket.destroy();
    return true;
  }

  #endHandshake(slot: ConnectionSlot): void {
    if (slot.handshake !== undefined) this.#handshakes.giveBack(slot.handshake);
    slot.handshake = undefined;
    this.#inHandshake.delete(slot);
  }

  /** The connection has a request in progress, or must no longer be closed to make room. */
  busy(slot: ConnectionSlot | undefined): void {
    if (slot !== undefined) this.#idle.remove(slot);
  }

  idle(slot: ConnectionSlot | undefined): void {
    if (slot?.socket.destroyed === false && slot.list === undefined) this.#idle.push(slot);
  }

  /** Closes the connection that has been idle the longest; `false`: none is idle. */
  #evict(): boolean {
    this.lastFullMs = performance.now();
    for (let slot = this.#idle.shift(); slot !== undefined; slot = this.#idle.shift()) {
      const { socket } = slot;
      if (socket.destroyed) continue;
      this.counts.evicted += 1;
      socket.destroy();
      return true;
    }
    return false;
  }
}

const endOf = (one: Socket): string => `${one.remoteAddress} ${one.remotePort} ${one.localPort}`;
