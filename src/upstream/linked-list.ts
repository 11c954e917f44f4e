/** A member of a list: its neighbours, and the list that it is in. */
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

  /** Removes and returns the oldest member. */
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
