import type { ExchangeRecord } from '../telemetry/exchange-record.ts';

/** Each exchange is one of these: `failed` is a 5xx or a response that broke off, whoever is to blame. */
export const outcomes = ['passed', 'refused', 'observed', 'failed'] as const;
export type Outcome = (typeof outcomes)[number];

/** Counts of the last minutes, in steps of some seconds; the oldest first, the last one still filling. */
export type TimelineReading = { readonly stepMs: number; readonly endMs: number } & Readonly<
  Record<Outcome, readonly number[]>
>;

export interface Timeline {
  note(record: ExchangeRecord, nowMs: number): void;
  read(nowMs: number): TimelineReading;
}

const stepMs = 5_000;
const steps = 60;

/** A ring of five minutes. A clock that is set back only blurs it. */
export function createTimeline(): Timeline {
  const counts = outcomes.map(() => new Uint32Array(steps));
  let current = 0;

  const advance = (nowMs: number): number => {
    const step = Math.floor(nowMs / stepMs);
    if (step > current) {
      for (let past = Math.max(current + 1, step - steps + 1); past <= step; past++) {
        for (const ring of counts) ring[past % steps] = 0;
      }
      current = step;
    }
    return current % steps;
  };

  return {
    note(record, nowMs) {
      const place = advance(nowMs);
      const ring = counts[outcomes.indexOf(outcomeOf(record))];
      if (ring !== undefined) ring[place] = (ring[place] ?? 0) + 1;
    },
    read(nowMs) {
      advance(nowMs);
      const readings = counts.map((ring) =>
        Array.from({ length: steps }, (_, i) => ring[(current + 1 + i) % steps] ?? 0),
      );
      const [passed = [], refused = [], observed = [], failed = []] = readings;
      return { stepMs, endMs: (current + 1) * stepMs, passed, refused, observed, failed };
    },
  };
}

export function outcomeOf({ decision, status, observed }: ExchangeRecord): Outcome {
  if (status >= 500 || (decision === 'aborted' && status !== 0)) return 'failed';
  if (decision === 'refused') return 'refused';
  return observed === undefined ? 'passed' : 'observed';
}
