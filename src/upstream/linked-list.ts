/** A member of a list: its neighbours, and the list that it is in. */
export interface Linked<T extends Linked<T>> {
  older: T | undefined;
  newer: T | undefined;
  list: LinkedList<T> | undefined;
}

/**
 * A queue from the middle of which a member can be removed in constant time and without allocation. A member is in one
 * list at most.
 */
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

  /** Removes and returns the oldest member. */
  shift(): T | undefined {
    const member = this.oldest;
    if (member !== undefined) this.remove(member);
    return member;
  }

  /** Whether it was in this list. */
  remove(member: T): boolean {
    if (member.list !== this) return false;
    if (member.older === undefined) this.oldest = member.newer;
    else member.older.newer = member.newer;
    if (member.newer === undefined) this.newest = member.older;
    else member.newer.older = member.older;
    member.older = undefined;
    member.newer = undefined;
    member.list = undefined;
    this.length -= 1;
    return true;
  }
}

/**
 * First in, first out. An empty queue keeps its array, so that a queue that nearly every exchange uses allocates
 * nothing.
 */
export class KeptQueue<T> {
  readonly #items: (T | undefined)[] = [];
  #next = 0;
  #last = 0;

  push(item: T): void {
    this.#items[this.#last] = item;
    this.#last += 1;
  }

  shift(): T | undefined {
    if (this.#next === this.#last) {
      this.#next = 0;
      this.#last = 0;
      return undefined;
    }
    const item = this.#items[this.#next];
    this.#items[this.#next] = undefined;
    this.#next += 1;
    return item;
  }
}
