import { isolate } from '../lib/faults.ts';

export interface DeadlineEvents {
  /** The upstream made no progress, or did not answer in time. */
  onTimeout(): void;
  /** The kernel did not take the whole request in time. */
  onLate(): void;
  /** A body was held back for too long. */
  onCollectedTooLong(): void;
  /** One of the other callbacks threw: the exchange is to end. */
  onBroken(): void;
}

/** Milliseconds for which a body is held back for hooks without a deadline of their own. */
const collectTimeoutMs = 1_000;

/**
 * The timers of one exchange. With `answerWithinMs` there is one fixed end for all from the queue to the last byte.
 * Without it, `responseTimeoutMs` begins when the request gets a connection, and begins anew with every progress.
 */
export class Deadlines {
  readonly #events: DeadlineEvents;
  readonly #answerWithinMs: number | undefined;
  readonly #responseTimeoutMs: number;
  #answer: NodeJS.Timeout | undefined;
  #collect: NodeJS.Timeout | undefined;
  #send: NodeJS.Timeout | undefined;

  constructor(events: DeadlineEvents, answerWithinMs: number | undefined, responseTimeoutMs: number) {
    this.#events = events;
    this.#answerWithinMs = answerWithinMs;
    this.#responseTimeoutMs = responseTimeoutMs;
  }

  begin(): void {
    if (this.#answerWithinMs !== undefined) this.#startAnswer(this.#answerWithinMs);
  }

  dispatched(): void {
    if (this.#answerWithinMs === undefined) this.#startAnswer(this.#responseTimeoutMs);
  }

  progress(): void {
    if (this.#answerWithinMs === undefined) this.#answer?.refresh();
  }

  sending(withinMs: number): void {
    clearTimeout(this.#send);
    this.#send = setTimeout(() => this.#ring('onLate'), withinMs);
  }

  sent(): void {
    clearTimeout(this.#send);
    this.progress();
  }

  collecting(): void {
    if (this.#answerWithinMs !== undefined) return;
    this.#collect = setTimeout(() => this.#ring('onCollectedTooLong'), collectTimeoutMs);
  }

  stop(): void {
    clearTimeout(this.#answer);
    clearTimeout(this.#collect);
    clearTimeout(this.#send);
  }

  #startAnswer(ms: number): void {
    this.#answer = setTimeout(() => this.#ring('onTimeout'), ms);
  }

  #ring(event: Exclude<keyof DeadlineEvents, 'onBroken'>): void {
    isolate(
      () => this.#events[event](),
      () => this.#events.onBroken(),
    );
  }
}
