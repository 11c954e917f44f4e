import { reject } from '../rejections/rejection.ts';
import { networkOf } from './network.ts';

/** One client, or one subject, has as much under way as it may; whatever the mode. */
export const beyondShare = reject('overloaded', { reason: 'client-share', retryAfterSeconds: 1 });

export interface InFlightOptions {
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
  #network: string | undefined;
  #subject: string | undefined;
  #isLeft = false;

  constructor(inFlight: InFlight, isBeyond: boolean) {
    this.#inFlight = inFlight;
    this.isBeyond = isBeyond;
  }

  /** Whether the client at this address has a place left; asked once. */
  takeFor(clientAddress: string): boolean {
    const { clients } = this.#inFlight;
    if (!clients.areBounded) return true;
    const network = networkOf(clientAddress);
    if (!clients.take(network)) return false;
    this.#network = network;
    return true;
  }

  /** Whether the subject of an access token has a place left; asked once. */
  takeForSubject(subject: string): boolean {
    const { subjects } = this.#inFlight;
    if (!subjects.areBounded) return true;
    if (!subjects.take(subject)) return false;
    this.#subject = subject;
    return true;
  }

  /** Its exchange is over, or its connection; more than once is as good as once. */
  leave(): void {
    if (this.#isLeft) return;
    this.#isLeft = true;
    const { clients, subjects } = this.#inFlight;
    if (this.#network !== undefined) clients.giveBack(this.#network);
    if (this.#subject !== undefined) subjects.giveBack(this.#subject);
    this.#inFlight.left();
  }
}

/** How many each holder has, and may have. */
export class Shares {
  readonly #most: number;
  readonly #held = new Map<string, number>();

  constructor(most: number) {
    this.#most = most;
  }

  get areBounded(): boolean {
    return this.#most !== Number.POSITIVE_INFINITY;
  }

  take(holder: string): boolean {
    const held = this.#held.get(holder) ?? 0;
    if (held + 1 > this.#most) return false;
    this.#held.set(holder, held + 1);
    return true;
  }

  giveBack(holder: string): void {
    const held = this.#held.get(holder) ?? 0;
    if (held > 1) this.#held.set(holder, held - 1);
    else this.#held.delete(holder);
  }
}
