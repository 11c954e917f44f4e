export interface Linked<T extends Linked<T>> {
  older: T | undefined;
  newer: T | undefined;
  list: LinkedList<T> | undefined;
}

/** A queue from which any member can be removed in constant time and without allocation. A member is in one list at most. */
export class LinkedList<T extends Linked<T>> {
  oldest: T | undefined;
  newest: T | undefined;
  length = 0;

  push(member: T): void {
    member.older = this.newest;
    if (this.newest === undefined) this.oldest = member;
    else this.newest.newer = member;
    this.newest = member;
    member.list = this;
    this.length += 1;
  }

  shift(): T | undefined {
    const member = this.oldest;
    if (member !== undefined) this.remove(member);
    return member;
  }

  /** Does nothing if `member` is not in this list. */
  remove(member: T): void {
    if (member.list !== this) return;
    if (member.older === undefined) this.oldest = member.newer;
    else member.older.newer = member.newer;
    if (member.newer === undefined) this.newest = member.older;
    else member.newer.older = member.older;
    member.older = undefined;
    member.newer = undefined;
    member.list = undefined;
    this.length -= 1;
  }
}

/** The sender whose share a request uses. */
export interface RequestSender {
  /** Client address; of IPv6 the first 64 bits. */
  readonly address: string;
  readonly subject: string | undefined;
}

/** A request for a connection. Only the queue changes the fields. */
export class QueueMember implements Linked<QueueMember> {
  readonly sender: RequestSender | undefined;
  address: Party | undefined;
  subject: Party | undefined;
  state: 'new' | 'waiting' | 'active' | 'left' = 'new';
  /** Whether the member counts towards the share of its subject. */
  isAdmitted = false;
  older: QueueMember | undefined;
  newer: QueueMember | undefined;
  list: LinkedList<QueueMember> | undefined;

  constructor(sender: RequestSender | undefined) {
    this.sender = sender;
  }
}

class Party implements Linked<Party> {
  /** Waiters; an address has only those that their subject's share admits. */
  readonly line = new LinkedList<QueueMember>();
  /** Members in any state. */
  size = 0;
  waiting = 0;
  /** Of an address: the active members. Of a subject: these and the admitted waiters. */
  used = 0;
  /** How many of `line` would get a connection if one were free. */
  ready = 0;
  older: Party | undefined;
  newer: Party | undefined;
  list: LinkedList<Party> | undefined;
}

/**
 * Decides who gets the next connection. Each address, and each subject of access tokens, may use its share of the connections and of
 * the queue. Addresses with waiters are served round robin, the waiters of one address in their order. The work for an event does
 * not grow with the number of waiters.
 */
export class FairQueue<M extends QueueMember> {
  readonly #addresses = new NamedEntries(() => new Party());
  readonly #subjects = new NamedEntries(() => new Party());
  /** Addresses with ready waiters, the next one first. */
  readonly #round = new LinkedList<Party>();
  readonly #share: number;
  readonly #queueShare: number;
  active = 0;
  waiting = 0;
  /** Waiters that would get a connection if one were free; the others wait for their share. */
  ready = 0;

  constructor({ share, queueShare }: { readonly share: number; readonly queueShare: number }) {
    this.#share = share;
    this.#queueShare = queueShare;
  }

  /** Whether `member` is within its share, so that it may begin at once. Called once, before all other methods. */
  join(member: M): boolean {
    const { address = '', subject } = member.sender ?? {};
    member.address = this.#addresses.enter(address);
    if (subject !== undefined) member.subject = this.#subjects.enter(subject);
    return member.address.used < this.#share && (member.subject?.used ?? 0) < this.#share;
  }

  begin(member: M): void {
    this.#admit(member);
    this.#activate(member);
  }

  /** Makes `member` wait. False: its share of the queue is used up. */
  push(member: M): boolean {
    const { subject } = member;
    const waiting = Math.max(addressOf(member).waiting, subject?.waiting ?? 0);
    if (waiting + 1 > this.#queueShare) return false;
    member.state = 'waiting';
    this.#countWaiting(member, 1);
    if (subject !== undefined && subject.used >= this.#share) subject.line.push(member);
    else this.#line(member);
    return true;
  }

  /** Takes the next waiter in turn, which is active from now on. */
  shift(): M | undefined {
    const address = this.#round.shift();
    const member = address?.line.shift();
    if (member === undefined) return undefined;
    this.#countWaiting(member, -1);
    this.#activate(member);
    return member as M;
  }

  /** The next waiter in turn, which keeps waiting; the next call returns one of the next address. */
  peek(): M | undefined {
    const address = this.#round.shift();
    if (address !== undefined) this.#round.push(address);
    return address?.line.oldest as M | undefined;
  }

  /** Whether the waiter waits because its address or subject has used up its share. */
  isAtShare(member: M): boolean {
    return !member.isAdmitted || addressOf(member).used >= this.#share;
  }

  /** Members with the same address, in any state. */
  sizeOf(member: M): number {
    return addressOf(member).size;
  }

  /** Whether a waiting address has no active member. */
  get hasNewWaiter(): boolean {
    for (let one = this.#round.oldest; one !== undefined; one = one.newer) if (one.used === 0) return true;
    return false;
  }

  /** `member` has ended, in any state; further calls do nothing. */
  leave(member: M): void {
    const { state, address, subject } = member;
    if (address === undefined || state === 'left') return;
    member.state = 'left';
    if (state === 'waiting') {
      member.list?.remove(member);
      this.#countWaiting(member, -1);
    } else if (state === 'active') {
      this.active -= 1;
      address.used -= 1;
    }
    this.#count(address);
    this.#addresses.leave(address);
    if (subject === undefined) return;
    if (member.isAdmitted) this.#release(subject);
    this.#subjects.leave(subject);
  }

  /** One member fewer counts towards the subject's share, so its next waiter is admitted. */
  #release(subject: Party): void {
    subject.used -= 1;
    const next = subject.line.shift();
    if (next !== undefined) this.#line(next);
  }

  #line(member: QueueMember): void {
    this.#admit(member);
    const address = addressOf(member);
    address.line.push(member);
    this.#count(address);
  }

  #admit(member: QueueMember): void {
    member.isAdmitted = true;
    if (member.subject !== undefined) member.subject.used += 1;
  }

  #activate(member: QueueMember): void {
    member.state = 'active';
    this.active += 1;
    const address = addressOf(member);
    address.used += 1;
    this.#count(address);
  }

  #countWaiting(member: QueueMember, change: 1 | -1): void {
    this.waiting += change;
    addressOf(member).waiting += change;
    if (member.subject !== undefined) member.subject.waiting += change;
  }

  /** Updates the counts after the waiters or the active members of an address have changed. */
  #count(address: Party): void {
    const ready = Math.min(address.line.length, this.#share - address.used);
    this.ready += ready - address.ready;
    address.ready = ready;
    if (ready === 0) this.#round.remove(address);
    else if (address.list === undefined) this.#round.push(address);
  }
}

function addressOf(member: QueueMember): Party {
  return member.address as Party;
}

/** A percentage of a limit, at least one; 100: no limit. */
export function shareOf(limit: number, percent: number): number {
  return percent >= 100 ? Number.POSITIVE_INFINITY : Math.max(1, Math.floor((limit * percent) / 100));
}

/** Entries without a user that may always be kept. */
const keptEntries = 1_024;

/**
 * One entry for each name in use. Entries without a user are kept too, up to `keptEntries` or as many as the others:
 * entries that come and go make the Map allocate new tables, which V8 frees only at a full collection.
 */
export class NamedEntries<T extends { size: number }> {
  readonly #create: () => T;
  readonly #entries = new Map<string, T>();
  #unused = 0;

  constructor(create: () => T) {
    this.#create = create;
  }

  get size(): number {
    return this.#entries.size;
  }

  enter(name: string): T {
    let entry = this.#entries.get(name);
    if (entry === undefined) {
      entry = this.#create();
      this.#entries.set(name, entry);
    } else if (entry.size === 0) this.#unused -= 1;
    entry.size += 1;
    return entry;
  }

  leave(entry: T): void {
    entry.size -= 1;
    if (entry.size > 0) return;
    this.#unused += 1;
    if (this.#unused <= keptEntries || this.#unused * 2 <= this.#entries.size) return;
    for (const [name, one] of this.#entries) if (one.size === 0) this.#entries.delete(name);
    this.#unused = 0;
  }
}
