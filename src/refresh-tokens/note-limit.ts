import type { SubjectDigest } from './token-values.ts';

/** Milliseconds that the record of an unknown token lives at most, and after which counting begins anew. */
export const noteMs = 86_400_000;

/** Bounds the notes about unknown tokens that this process makes in a day, because clients can invent tokens. */
export class NoteLimit {
  readonly #perSubject: number;
  readonly #inAll: number;
  readonly #now: () => number;
  readonly #ofSubject = new Map<SubjectDigest, number>();
  #count = 0;
  #endsAtMs = 0;

  constructor(perSubject = 256, inAll = 16_384, now = () => performance.now()) {
    this.#perSubject = perSubject;
    this.#inAll = inAll;
    this.#now = now;
  }

  /** Counts one more note of the subject; false: there is no room. */
  admit(by: SubjectDigest): boolean {
    if (this.#now() >= this.#endsAtMs) {
      this.#ofSubject.clear();
      this.#count = 0;
      this.#endsAtMs = this.#now() + noteMs;
    }
    const own = this.#ofSubject.get(by) ?? 0;
    if (own >= this.#perSubject || this.#count >= this.#inAll) return false;
    this.#ofSubject.set(by, own + 1);
    this.#count += 1;
    return true;
  }
}
