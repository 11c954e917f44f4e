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
 * Maximum number of decisions of one outcome that are kept for each second. At a high rate the log then reaches
 * further back, other decisions do not displace refusals, and the garbage collector has fewer long-lived records.
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
      // Copied, because a substring would keep the whole request head in memory.
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
