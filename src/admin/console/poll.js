/** Interval while the page is visible and answers arrive. */
const everyMs = 2_000;
/** Without answers each wait is twice as long as the one before, up to this. */
export const longestWaitMs = 30_000;

/**
 * Asks repeatedly, never twice at a time, and only while the page is visible: a hidden page has no timer, so that hours of
 * sleep end in one question. `ask` resolves to whether there was an answer.
 */
export class Poll {
  #ask;
  #isWatched;
  #timer;
  #running;
  #isWantedAgain = false;
  #waitMs = everyMs;

  constructor(ask, isWatched) {
    this.#ask = ask;
    this.#isWatched = isWatched;
  }

  /** Asks now, unless the page is hidden or a question is under way. */
  wake() {
    if (this.#running === undefined && this.#isWatched()) void this.#run();
  }

  /** As `wake`, but if a question is under way, asks once more after it: the question has changed. */
  again() {
    this.#isWantedAgain = this.#running !== undefined;
    this.wake();
  }

  async #run() {
    clearTimeout(this.#timer);
    this.#running = this.#ask().catch(() => false);
    const isAnswered = await this.#running;
    this.#running = undefined;
    this.#waitMs = isAnswered ? everyMs : Math.min(this.#waitMs * 2, longestWaitMs);
    if (this.#isWantedAgain) return this.again();
    if (this.#isWatched()) this.#timer = setTimeout(() => this.wake(), this.#waitMs);
  }
}
