/** Microseconds: clocks of two machines run equally fast to one part in a thousand (NTP slews by half of that at most). */
const driftPerMs = 1;

/** An older word is asked for anew, beside what is under way. */
const freshMs = 5_000;
/** Beyond this age the allowance for drift would eat a noticeable part of a deadline: asked before anything is sent. */
const usableMs = 30_000;

/**
 * What is known of the clock of one server: a lower bound for every moment of ours (`performance.now`, milliseconds).
 * The server tells its time in a reply; when the reply is here, its clock shows at least that. The tightest word of the
 * last seconds counts. Times of the server are microseconds.
 */
export class ServerClock {
  #storeMicros = 0;
  #atMs = Number.NEGATIVE_INFINITY;
  #heardMs = Number.NEGATIVE_INFINITY;

  /** The server's time `storeMicros` came at `heardMs` in reply to what was asked at `askedMs`. */
  hear(storeMicros: number, askedMs: number, heardMs: number): void {
    // It showed less than it must have shown already when it was asked: somebody has set it back.
    const isSetBack = this.isKnown(askedMs) && storeMicros < this.atLeast(askedMs);
    const isTighter = !this.isKnown(heardMs) || storeMicros >= this.atLeast(heardMs);
    this.#heardMs = heardMs;
    if (!isSetBack && !isTighter) return;
    this.#storeMicros = storeMicros;
    this.#atMs = heardMs;
  }

  /** The server's clock shows this or more at that moment of ours. Only when `isKnown`. */
  atLeast(ms: number): number {
    const distanceMs = ms - this.#atMs;
    return Math.floor(this.#storeMicros + distanceMs * 1000 - Math.abs(distanceMs) * driftPerMs);
  }

  isKnown(ms: number): boolean {
    return this.wasHeard(ms, usableMs);
  }

  isFresh(ms: number): boolean {
    return this.wasHeard(ms, freshMs);
  }

  /** Whether its last word came so near to that moment, before it or after. */
  wasHeard(ms: number, withinMs: number): boolean {
    return Math.abs(ms - this.#heardMs) <= withinMs;
  }

  /** Another server may be at the other end. */
  forget(): void {
    this.#atMs = Number.NEGATIVE_INFINITY;
    this.#heardMs = Number.NEGATIVE_INFINITY;
  }
}
