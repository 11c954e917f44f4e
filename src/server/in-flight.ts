import { reject } from '../http/rejection.ts';

/** One client, or one subject, has as much under way as it may; whatever the mode. */
export const beyondShare = reject('overloaded', { reason: 'client-share', retryAfterSeconds: 1 });

interface InFlightOptions {
  /** How many may be under way at once. */
  readonly limit: number;
  /** Percent of them that one client, or one subject of access tokens, may hold. */
  readonly sharePercent: number;
}

/**
 * What is under way at once, in all and by whom. One client never holds more than its share: whatever it sends or leaves
 * unsent, the rest is there for others. Both its address (the network of an IPv6 one) and, once it is known, its subject
 * count: many addresses share a token less easily than an address, and accounts are cheaper than addresses.
 */
export class InFlight {
  readonly clients: Shares;
  readonly subjects: Shares;
  readonly #limit: number;
  #count = 0;

  constructor({ limit, sharePercent }: InFlightOptions) {
    this.#limit = limit;
    const most = sharePercent >= 100 ? Number.POSITIVE_INFINITY : Math.max(1, (limit * sharePercent) / 100);
    this.clients = new Shares(most);
    this.subjects = new Shares(most);
  }

  get count(): number {
    return this.#count;
  }

  /** The place of one more, beyond the limit too: a refusal takes its time as well. */
  enter(): Place {
    this.#count += 1;
    return new Place(this, this.#count > this.#limit);
  }

  left(): void {
    this.#count -= 1;
  }
}

/** The place of one exchange among those under way. */
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

  /** Whether the client at this address has a place left; asked once. */
  takeFor(clientAddress: string): boolean {
    const { clients } = this.#inFlight;
    if (!clients.areBounded) return true;
    this.#ofClient = clients.take(networkOf(clientAddress));
    return this.#ofClient !== undefined;
  }

  /** Whether the subject of an access token has a place left; asked once. */
  takeForSubject(subject: string): boolean {
    const { subjects } = this.#inFlight;
    if (!subjects.areBounded) return true;
    this.#ofSubject = subjects.take(subject);
    return this.#ofSubject !== undefined;
  }

  /** Its exchange is over, or its connection; more than once is as good as once. */
  leave(): void {
    if (this.#isLeft) return;
    this.#isLeft = true;
    const { clients, subjects } = this.#inFlight;
    if (this.#ofClient !== undefined) clients.giveBack(this.#ofClient);
    if (this.#ofSubject !== undefined) subjects.giveBack(this.#ofSubject);
    this.#inFlight.left();
  }
}

/** What one holder has. */
interface Share {
  held: number;
}

/** Shares of nobody that may stay, however few others there are. */
const fewUnheld = 64;

/**
 * How many each holder has, and may have: one look-up to take, none to give back. The share of a holder that has nothing
 * left stays for its next request, until there are as many of these as others.
 */
export class Shares {
  readonly #most: number;
  readonly #shares = new Map<string, Share>();
  #unheld = 0;

  constructor(most: number) {
    this.#most = most;
  }

  get areBounded(): boolean {
    return this.#most !== Number.POSITIVE_INFINITY;
  }

  /** How many shares are kept. */
  get size(): number {
    return this.#shares.size;
  }

  /** One more for `holder`, to be given back once; undefined: it has as much as it may. */
  take(holder: string): Share | undefined {
    const share = this.#shares.get(holder) ?? this.#open(holder);
    if (share.held + 1 > this.#most) return undefined;
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

  /** As much work as that many have given back since the last time. */
  #forgetUnheld(): void {
    for (const [holder, share] of this.#shares) if (share.held === 0) this.#shares.delete(holder);
    this.#unheld = 0;
  }
}

/**
 * Who is one client, as far as an address tells: an IPv4 address, or the first 64 bits of an IPv6 address, all others of
 * which are its holder's to choose (RFC 4291 section 2.5.4).
 */
export function networkOf(address: string): string {
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
