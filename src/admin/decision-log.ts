import type { ExchangeRecord } from '../telemetry/exchange-record.ts';

/** A decision as the console shows it. */
export interface Decision extends ExchangeRecord {
  /** Counts from 1 at the start of the process. */
  readonly seq: number;
  /** Milliseconds since the epoch. */
  readonly atMs: number;
}

/** The last decisions. Noting one is two writes into a ring; whoever reads too late has missed some. */
export interface DecisionLog {
  note(record: ExchangeRecord, nowMs: number): void;
  /** Number of the last one; 0: none yet. */
  readonly last: number;
  /** Those after `seq` that are still kept, the oldest first. */
  since(seq: number): Decision[];
}

export function createDecisionLog(capacity = 500): DecisionLog {
  const records: (ExchangeRecord | undefined)[] = new Array(capacity).fill(undefined);
  const times = new Float64Array(capacity);
  let last = 0;
  return {
    note(record, nowMs) {
      const place = ++last % capacity;
      records[place] = record;
      times[place] = nowMs;
    },
    get last() {
      return last;
    },
    since(seq) {
      const decisions: Decision[] = [];
      for (let one = Math.max(seq, last - capacity, 0) + 1; one <= last; one++) {
        const record = records[one % capacity];
        if (record !== undefined) decisions.push({ seq: one, atMs: times[one % capacity] ?? 0, ...record });
      }
      return decisions;
    },
  };
}
