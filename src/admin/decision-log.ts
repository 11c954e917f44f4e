import { copyText } from '../lib/text.ts';
import type { ExchangeRecord } from '../telemetry/exchange-record.ts';
import { type Outcome, outcomeOf } from './outcome.ts';

/** A decision as the console shows it. */
export interface Decision extends Omit<ExchangeRecord, 'bytesIn' | 'bytesOut'> {
  /** Counts from 1 at the start of the process. */
  readonly seq: number;
  /** Milliseconds since the epoch. */
  readonly atMs: number;
  readonly outcome: Outcome;
}

/**
 * Decisions with one outcome that are kept of a second. At a high rate the log reaches back further, refusals are not lost
 * among thousands of others, and few records live long enough to burden the garbage collector.
 */
const mostASecond = 200;

/** The last decisions. The oldest are overwritten. */
export class DecisionLog {
  readonly #capacity: number;
  readonly #kept: Decision[] = [];
  #last = 0;
  #second = 0;
  #counts: Partial<Record<Outcome, number>> = {};

  constructor(capacity = 5_000) {
    this.#capacity = capacity;
  }

  note({ bytesIn, bytesOut, ...record }: ExchangeRecord, nowMs: number): void {
    const outcome = outcomeOf(record);
    const second = Math.floor(nowMs / 1_000);
    if (second !== this.#second) this.#counts = {};
    this.#second = second;
    const count = (this.#counts[outcome] ?? 0) + 1;
    this.#counts[outcome] = count;
    if (count > mostASecond) return;
    const at = this.#last % this.#capacity;
    this.#last += 1;
    this.#kept[at] = {
      ...record,
      ...{ seq: this.#last, atMs: nowMs, outcome },
      // They may be parts of a whole head.
      requestId: copyText(record.requestId),
      path: copyText(record.path),
      clientAddress: copyText(record.clientAddress),
    };
  }

  /** The newest first. */
  decisions(): readonly Decision[] {
    return this.#kept.toSorted((one, other) => other.seq - one.seq);
  }
}
