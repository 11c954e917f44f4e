import { plainAddress } from '../http/peer.ts';
import { reject } from '../http/rejection.ts';

/** One client or one subject has as many requests in progress as it may. Observe mode does not change this. */
export const beyondShare = reject('overloaded', { reason: 'client-share', retryAfterSeconds: 1 });

export interface SharedLimit {
  /** Requests, or connections, at once. */
  readonly limit: number;
  /** Percent of the limit that one client, one peer, or one subject of access tokens may hold. */
  readonly sharePercent: number;
}

/**
 * The requests in progress, in all and by client. One client never holds more than its share, so the rest stays free
 * for others. Both its address (of IPv6 the network) and, once known, its subject count: one token rarely comes from
 * many addresses, and accounts are cheaper than addresses.
 */
export class InFlight {
  readonly clients: Shares;
  readonly subjects: Shares;
  readonly #limit: number;
  #count = 0;

  constructor(options: SharedLimit) {
    this.#limit = options.limit;
    this.clients = new Shares(options);
    this.subjects = new Shares(options);
  }

  get count(): number {
    return this.#count;
  }

  /** An entry for one more request, even beyond the limit: a refusal takes time, too. */
  enter(): Place {
    this.#count += 1;
    return new Place(this, this.#count > this.#limit);
  }

  left(): void {
    this.#count -= 1;
  }
}

/** The entry of one request among those in progress. */
export class Place {
  /** All places were taken. */
  readonly isBeyond: boolean;
  readonly #inFlight: InFlight;
  #ofClient: Share | undefined;
  #ofSubject: Share | undefined;
  #isLeft = false;

  constructor(inFlight: InFlight, isBeyond: boolean) {
    this.#inFlight = inFlight;
    this.isBeyond = isBeyond;
  }

  /** Whether the client at this address may have one more request in progress. To be called once. */
  takeFor(clientAddress: string): boolean {
    const { clients } = this.#inFlight;
    if (!clients.areBounded) return true;
    this.#ofClient = clients.take(networkOf(clientAddress));
    return this.#ofClient !== undefined;
  }

  /** Whether the subject of an access token may have one more request in progress. To be called once. */
  takeForSubject(subject: string): boolean {
    const { subjects } = this.#inFlight;
    if (!subjects.areBounded) return true;
    this.#ofSubject = subjects.take(subject);
    return this.#ofSubject !== undefined;
  }

  /** The exchange or its connection is over. Calls after the first one do nothing. */
  leave(): void {
    if (this.#isLeft) return;
    this.#isLeft = true;
    const { clients, subjects } = this.#inFlight;
    if (this.#ofClient !== undefined) clients.giveBack(this.#ofClient);
    if (this.#ofSubject !== undefined) subjects.giveBack(this.#ofSubject);
    this.#inFlight.left();
  }
}

interface Share {
  held: number;
}

/**
 * Shares with nothing taken that are always kept. As many holders may take turns without a new entry for each request: entries
 * that come and go make the Map's table anew each time, and V8 keeps it until it collects the whole heap.
 */
const fewUnheld = 1_024;

/**
 * How many requests each holder has, and may have: one look-up to take, none to give back. A share with nothing taken
 * is kept for its holder's next request, until as many of them are kept as others are in use.
 */
export class Shares {
  readonly #max: number;
  readonly #shares = new Map<string, Share>();
  #unheld = 0;

  /** Each holder may have its share, and one at least; 100 percent: any number. */
  constructor({ limit, sharePercent }: SharedLimit) {
    this.#max = sharePercent >= 100 ? Number.POSITIVE_INFINITY : Math.max(1, (limit * sharePercent) / 100);
  }

  get areBounded(): boolean {
    return this.#max !== Number.POSITIVE_INFINITY;
  }

  /** How many shares are kept. */
  get size(): number {
    return this.#shares.size;
  }

  /** One more request of `holder`; undefined: it has as many as it may. What is returned has to be given back once. */
  take(holder: string): Share | undefined {
    const share = this.#shares.get(holder) ?? this.#open(holder);
    if (share.held + 1 > this.#max) return undefined;
    if (share.held === 0) this.#unheld -= 1;
    share.held += 1;
    return share;
  }

  giveBack(share: Share): void {
    share.held -= 1;
    if (share.held > 0) return;
    this.#unheld += 1;
    if (this.#unheld > fewUnheld && this.#unheld * 2 > this.#shares.size) this.#forgetUnheld();
  }

  #open(holder: string): Share {
    const share = { held: 0 };
    this.#shares.set(holder, share);
    this.#unheld += 1;
    return share;
  }

  /** Work in proportion to the shares that were given back since the last time. */
  #forgetUnheld(): void {
    for (const [holder, share] of this.#shares) if (share.held === 0) this.#shares.delete(holder);
    this.#unheld = 0;
  }
}

/**
 * The client that uses an address: an IPv4 address, in any of its forms, or the first 64 bits of an IPv6 address, whose
 * owner may choose the other bits (RFC 4291 section 2.5.4).
 */
export function networkOf(sent: string): string {
  const address = plainAddress(sent);
  if (!address.includes(':')) return address;
  const [groups = [], tail] = address.split('::').map((part) => (part === '' ? [] : part.split(':')));
  if (tail !== undefined) {
    // The last two may be written as an IPv4 address.
    const written = groups.length + tail.length + (address.includes('.') ? 1 : 0);
    for (let i = written; i < 8; i += 1) groups.push('0');
    for (const group of tail) groups.push(group);
  }
  const network = groups.slice(0, 4).map((group) => Number.parseInt(group, 16).toString(16));
  return `${network.join(':')}::/64`;
}
