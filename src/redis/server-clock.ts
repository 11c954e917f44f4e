/**
 * Microseconds for each millisecond: two clocks differ in speed by less than a thousandth (NTP slews by half of that at
 * most).
 */
const driftPerMs = 1;

/** A time older than this is asked for again, while claims go on. */
const freshMs = 5_000;
/** A time older than this is asked for before claims go on: the allowance for drift would shorten deadlines noticeably. */
const usableMs = 30_000;

/**
 * A lower bound of what the clock of one server shows at a moment of this process (`performance.now`, milliseconds). The
 * server tells its time in a reply; when the reply arrives, its clock shows at least that. The tightest bound of the last
 * seconds counts. Times of the server are microseconds.
 */
export class ServerClock {
  #storeMicros = 0;
  #atMs = Number.NEGATIVE_INFINITY;
  #heardMs = Number.NEGATIVE_INFINITY;

  /** The server's time `storeMicros` came at `heardMs` in reply to what was asked at `askedMs`. */
  hear(storeMicros: number, askedMs: number, heardMs: number): void {
    // Less than the bound for the moment of the question: the clock was set back.
    const isSetBack = this.isKnown(askedMs) && storeMicros < this.atLeast(askedMs);
    const isTighter = !this.isKnown(heardMs) || storeMicros >= this.atLeast(heardMs);
    this.#heardMs = heardMs;
    if (!isSetBack && !isTighter) return;
    this.#storeMicros = storeMicros;
    this.#atMs = heardMs;
  }

  /** The server's clock shows at least this at the moment `ms`. Valid only when `isKnown`. */
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

  /** Whether the server's time was last heard within so many milliseconds of that moment. */
  wasHeard(ms: number, withinMs: number): boolean {
    return Math.abs(ms - this.#heardMs) <= withinMs;
  }

  /** After a lost connection: another server may be at the other end. */
  forget(): void {
    this.#atMs = Number.NEGATIVE_INFINITY;
    this.#heardMs = Number.NEGATIVE_INFINITY;
  }
}
