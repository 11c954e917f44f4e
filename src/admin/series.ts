import { type RejectionName, rejectionKind, rejectionNames } from '../http/rejection.ts';
import type { ExchangeRecord } from '../telemetry/exchange-record.ts';
import { type Outcome, outcomeOf, outcomes } from './outcome.ts';

/** How far back the charts go, and in which steps. */
export const ranges = {
  '5m': { stepMs: 5_000, steps: 60 },
  '1h': { stepMs: 30_000, steps: 120 },
  '24h': { stepMs: 600_000, steps: 144 },
} as const;
type Range = keyof typeof ranges;

export function isRange(text: string): text is Range {
  return Object.hasOwn(ranges, text);
}

/**
 * Shares of the latency: the whole request, the shop's part, and the rest (shopward's own work and the client's
 * connection).
 */
const shares = ['whole', 'shop', 'own'] as const;
type Share = (typeof shares)[number];

/** Counts by step, the oldest first; the last step is not over yet. */
export interface OutcomeReading {
  readonly stepMs: number;
  /** End of the last step, in milliseconds since the epoch. */
  readonly endMs: number;
  readonly outcomes: Readonly<Record<Outcome, readonly number[]>>;
}

/** Outcomes, rejections and latencies by step. */
interface SeriesReading extends OutcomeReading {
  /** By name of the rejection, only those that occurred: enforced refusals, observed ones, and outages. */
  readonly refusals: Readonly<Record<string, readonly number[]>>;
  readonly observed: Readonly<Record<string, readonly number[]>>;
  readonly outages: Readonly<Record<string, readonly number[]>>;
  /** Milliseconds; null where no request ended in the step. */
  readonly latency: Readonly<Record<Share, Readonly<Record<Percentile, readonly (number | null)[]>>>>;
}

const percentiles = { p50: 0.5, p95: 0.95, p99: 0.99 } as const;
type Percentile = keyof typeof percentiles;

/** Bounds of the latency buckets: from 50 microseconds to about 50 seconds, three to each doubling. */
const bucketsPerOctave = 3;
const leastMs = 0.05;
const buckets = 61;

const names = rejectionNames.length;
const nameColumns = new Map(rejectionNames.map((name, i) => [name, outcomes.length + i]));
const latencyColumn = outcomes.length + 2 * names;
const width = latencyColumn + shares.length * buckets;

/**
 * The numbers of the console's charts. Lives in the process that has the admin port, and counts the exchanges of all
 * workers. An exchange costs a few additions in arrays of fixed size, a third of a MiB in all.
 */
export class Series {
  readonly #rings: Readonly<Record<Range, Ring>>;

  constructor() {
    const ringOf = (range: Range) => new Ring(ranges[range].stepMs, ranges[range].steps);
    this.#rings = { '5m': ringOf('5m'), '1h': ringOf('1h'), '24h': ringOf('24h') };
  }

  note(record: ExchangeRecord, nowMs: number): void {
    const { rejection, observed, durationMs, upstreamMs, status } = record;
    const columns = [outcomes.indexOf(outcomeOf(record))];
    const named = rejection ?? observed;
    const name = named === undefined ? undefined : nameColumns.get(named);
    if (name !== undefined) columns.push(rejection === undefined ? name + names : name);
    // No latency where the client left without a response (0), or where a connection was upgraded (101) and stays open.
    if (status !== 0 && status !== 101) {
      const ownMs = durationMs - (upstreamMs ?? 0);
      columns.push(latencyColumn + bucketOf(durationMs), latencyColumn + 2 * buckets + bucketOf(ownMs));
      if (upstreamMs !== undefined) columns.push(latencyColumn + buckets + bucketOf(upstreamMs));
    }
    for (const range in this.#rings) {
      const { cells, at } = this.#rings[range as Range].step(nowMs);
      for (const column of columns) cells[at + column] = (cells[at + column] as number) + 1;
    }
  }

  readOutcomes(range: Range, nowMs: number): OutcomeReading {
    const ring = this.#rings[range];
    const endMs = ring.advance(nowMs);
    return { stepMs: ranges[range].stepMs, endMs, outcomes: recordOf(outcomes, (i) => ring.column(i)) };
  }

  read(range: Range, nowMs: number): SeriesReading {
    const whole = this.readOutcomes(range, nowMs);
    const ring = this.#rings[range];
    const named = (offset: number, isWanted: (name: RejectionName) => boolean) =>
      Object.fromEntries(
        rejectionNames.flatMap((name, i) => {
          if (!isWanted(name)) return [];
          const counts = ring.column(outcomes.length + offset + i);
          return counts.some((count) => count > 0) ? [[name, counts] as const] : [];
        }),
      );
    return {
      ...whole,
      refusals: named(0, (name) => rejectionKind(name) === 'refusal'),
      observed: named(names, () => true),
      outages: named(0, (name) => rejectionKind(name) === 'outage'),
      latency: recordOf(shares, (i) => ring.percentilesAt(latencyColumn + i * buckets)),
    };
  }
}

function recordOf<Name extends string, T>(names: readonly Name[], of: (i: number) => T): Record<Name, T> {
  return Object.fromEntries(names.map((name, i) => [name, of(i)])) as unknown as Record<Name, T>;
}

/**
 * A ring of time steps, each a line of counts. When the clock is set back by a few steps, exchanges count for the latest one
 * until the clock is there again; when it is set back by more than the whole ring, the ring follows it at once.
 */
class Ring {
  readonly cells: Uint32Array;
  readonly #stepMs: number;
  readonly #steps: number;
  #current = 0;
  /** Where the line of the current step begins. */
  at = 0;

  constructor(stepMs: number, steps: number) {
    this.#stepMs = stepMs;
    this.#steps = steps;
    this.cells = new Uint32Array(steps * width);
  }

  step(nowMs: number): this {
    if (Math.floor(nowMs / this.#stepMs) !== this.#current) this.advance(nowMs);
    return this;
  }

  /** Moves on to the step of `nowMs`, clears the steps in between, and returns that step's end in milliseconds. */
  advance(nowMs: number): number {
    const step = Math.floor(nowMs / this.#stepMs);
    if (step < this.#current - this.#steps) this.#current = step - this.#steps;
    if (step > this.#current) {
      for (let past = Math.max(this.#current + 1, step - this.#steps + 1); past <= step; past++) {
        const from = (past % this.#steps) * width;
        this.cells.fill(0, from, from + width);
      }
      this.#current = step;
      this.at = (step % this.#steps) * width;
    }
    return (this.#current + 1) * this.#stepMs;
  }

  column(column: number): number[] {
    return Array.from({ length: this.#steps }, (_, i) => this.cells[this.#line(i) + column] ?? 0);
  }

  percentilesAt(column: number): Record<Percentile, (number | null)[]> {
    const found: Record<Percentile, (number | null)[]> = { p50: [], p95: [], p99: [] };
    for (let i = 0; i < this.#steps; i++) {
      const from = this.#line(i) + column;
      const counts = this.cells.subarray(from, from + buckets);
      for (const [name, share] of Object.entries(percentiles)) {
        found[name as Percentile].push(percentileOf(counts, share));
      }
    }
    return found;
  }

  #line(i: number): number {
    return ((this.#current + 1 + i) % this.#steps) * width;
  }
}

function bucketOf(ms: number): number {
  if (!(ms > leastMs)) return 0;
  return Math.min(buckets - 1, Math.floor(Math.log2(ms / leastMs) * bucketsPerOctave));
}

/**
 * In milliseconds, interpolated within the bucket: at most an eighth off. Null: nothing was counted. Exported for its
 * tests.
 */
export function percentileOf(counts: Uint32Array, share: number): number | null {
  let all = 0;
  for (const count of counts) all += count;
  if (all === 0) return null;
  const rank = share * all;
  let below = 0;
  for (const [bucket, count] of counts.entries()) {
    if (count > 0 && below + count >= rank) {
      const ms = leastMs * 2 ** ((bucket + (rank - below) / count) / bucketsPerOctave);
      return Number(ms.toPrecision(3));
    }
    below += count;
  }
  return null;
}
