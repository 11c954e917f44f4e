import {
  type CountedReason,
  type CountedRow,
  countedMethod,
  reasonKey,
  reasonOf,
} from '../telemetry/decision-counts.ts';
import type { ExchangeRecord } from '../telemetry/exchange-record.ts';
import { type Outcome, outcomeOf, outcomes } from './outcome.ts';

/** The time ranges of the charts, and their steps. */
export const ranges = {
  '5m': { stepMs: 5_000, steps: 60 },
  '1h': { stepMs: 30_000, steps: 120 },
  '24h': { stepMs: 600_000, steps: 144 },
} as const;
type Range = keyof typeof ranges;

export function isRange(text: string): text is Range {
  return Object.hasOwn(ranges, text);
}

/** Maximum number of rows, reasons and clients that are followed, and that one reading reports. */
const most = { rows: 300, reasons: 200, clients: 200, reported: 12 } as const;

/**
 * Parts of the latency: the whole request, the time of the shop, and the rest (shopward's own work and the client's
 * connection).
 */
const shares = ['whole', 'shop', 'own'] as const;

/** Counts by step, the oldest first; the last step is still running. */
export interface OutcomeReading {
  readonly stepMs: number;
  /** End of the last step, in milliseconds since the epoch. */
  readonly endMs: number;
  readonly outcomes: Readonly<Record<Outcome, readonly number[]>>;
}

const percentiles = { p50: 0.5, p95: 0.95, p99: 0.99 } as const;
type Percentile = keyof typeof percentiles;

/** Latency buckets: from 50 microseconds to about 50 seconds, three per doubling. */
const bucketsPerOctave = 3;
const leastMs = 0.05;
const buckets = 61;
const latencyColumn = outcomes.length;
const width = latencyColumn + shares.length * buckets;
/** Steps in which the latency of a row is kept, for each range: few, so that a row takes 8 KiB in total. */
const latencySteps = 4;

type Rings = Readonly<Record<Range, Ring>>;

function startRings(columns: number, stepsOf = (range: Range): number => ranges[range].steps): Rings {
  const ringOf = (range: Range) => {
    const { stepMs, steps } = ranges[range];
    return new Ring((stepMs * steps) / stepsOf(range), stepsOf(range), columns);
  };
  return { '5m': ringOf('5m'), '1h': ringOf('1h'), '24h': ringOf('24h') };
}

function addTo(rings: Rings, nowMs: number, column: number): void {
  rings['5m'].add(nowMs, column);
  rings['1h'].add(nowMs, column);
  rings['24h'].add(nowMs, column);
}

interface RowCourse extends CountedRow {
  readonly outcomes: Rings;
  readonly latency: Rings;
}

/** The counts over time that the console shows: for all requests, and for each row, reason and client. */
export class Trends {
  readonly #all = startRings(width);
  readonly #rows = new Courses<RowCourse>(most.rows);
  readonly #reasons = new Courses<{ readonly reason: CountedReason; readonly rings: Rings }>(most.reasons);
  readonly #clients = new Courses<{ last: CountedReason; readonly rings: Rings }>(most.clients);

  note(record: ExchangeRecord, nowMs: number): void {
    const { durationMs, upstreamMs, status, route } = record;
    const outcome = outcomes.indexOf(outcomeOf(record));
    const method = countedMethod(record.method);
    const row = this.#rows.of(`${method} ${route}`, nowMs, () => ({
      ...{ method, route, outcomes: startRings(outcomes.length) },
      latency: startRings(buckets, () => latencySteps),
    }));
    addTo(this.#all, nowMs, outcome);
    if (row !== undefined) addTo(row.outcomes, nowMs, outcome);
    const reason = reasonOf(record);
    if (reason !== undefined && reason.kind !== 'answer')
      this.#noteReason(reason, record.clientAddress, nowMs);
    // No latency if the client left without a response (0), or if the connection was upgraded (101) and stays open.
    if (status === 0 || status === 101) return;
    const bucket = bucketOf(durationMs);
    addTo(this.#all, nowMs, latencyColumn + bucket);
    addTo(this.#all, nowMs, latencyColumn + 2 * buckets + bucketOf(durationMs - (upstreamMs ?? 0)));
    if (upstreamMs !== undefined) addTo(this.#all, nowMs, latencyColumn + buckets + bucketOf(upstreamMs));
    if (row !== undefined) addTo(row.latency, nowMs, bucket);
  }

  readOutcomes(range: Range, nowMs: number): OutcomeReading {
    const ring = this.#all[range];
    const endMs = ring.advance(nowMs);
    return { stepMs: ranges[range].stepMs, endMs, outcomes: recordOf(outcomes, (i) => ring.column(i)) };
  }

  /** Outcomes and latencies by step, and the rows, reasons and clients with the most requests, with counts by step. */
  read(range: Range, nowMs: number) {
    const whole = this.readOutcomes(range, nowMs);
    const courseOf = (rings: Rings) => {
      rings[range].advance(nowMs);
      return course(rings[range].column(0));
    };
    return {
      ...whole,
      latency: recordOf(shares, (i) => this.#all[range].percentilesAt(latencyColumn + i * buckets)),
      rows: first(this.#rows.all((row) => readRow(row, range, nowMs))),
      reasons: first(this.#reasons.all(({ reason, rings }) => ({ ...reason, ...courseOf(rings) }))),
      clients: first(this.#clients.all(({ last, rings }, client) => ({ client, last, ...courseOf(rings) }))),
    };
  }

  #noteReason(reason: CountedReason, address: string, nowMs: number): void {
    const ofReason = this.#reasons.of(reasonKey(reason), nowMs, () => ({ reason, rings: startRings(1) }));
    if (ofReason !== undefined) addTo(ofReason.rings, nowMs, 0);
    if (reason.kind === 'outage') return;
    const client = this.#clients.of(address, nowMs, () => ({ last: reason, rings: startRings(1) }));
    if (client === undefined) return;
    client.last = reason;
    addTo(client.rings, nowMs, 0);
  }
}

/** A value for each key. At the bound a new key replaces the one with the fewest requests, at most once a second. */
class Courses<Value> {
  readonly #most: number;
  readonly #kept = new Map<string, { readonly value: Value; requests: number }>();
  #changedMs = 0;

  constructor(most: number) {
    this.#most = most;
  }

  of(key: string, nowMs: number, start: () => Value): Value | undefined {
    const known = this.#kept.get(key);
    if (known !== undefined) {
      known.requests++;
      return known.value;
    }
    if (this.#kept.size >= this.#most) {
      if (Math.abs(nowMs - this.#changedMs) < 1_000) return undefined;
      this.#changedMs = nowMs;
      const [least] = [...this.#kept].reduce((a, b) => (b[1].requests < a[1].requests ? b : a));
      this.#kept.delete(least);
    }
    const value = start();
    this.#kept.set(key, { value, requests: 1 });
    return value;
  }

  all<T>(read: (value: Value, key: string) => T): T[] {
    return Array.from(this.#kept, ([key, { value }]) => read(value, key));
  }
}

function readRow({ method, route, outcomes: rings, latency }: RowCourse, range: Range, nowMs: number) {
  rings[range].advance(nowMs);
  latency[range].advance(nowMs);
  const columns = recordOf(outcomes, (i) => rings[range].column(i));
  const counts = columns.passed.map((_, i) => outcomes.reduce((sum, one) => sum + (columns[one][i] ?? 0), 0));
  const { refused, observed, failed } = columns;
  return {
    ...{ method, route, ...course(counts) },
    ...{ refused: sumOf(refused), observed: sumOf(observed), failed: sumOf(failed) },
    p95: percentileOf(latency[range].sums(), percentiles.p95),
  };
}

function course(counts: readonly number[]) {
  return { requests: sumOf(counts), counts };
}

function first<T extends { readonly requests: number }>(courses: readonly T[]): T[] {
  return courses
    .filter(({ requests }) => requests > 0)
    .sort((a, b) => b.requests - a.requests)
    .slice(0, most.reported);
}

export function sumOf(counts: readonly number[]): number {
  return counts.reduce((sum, count) => sum + count, 0);
}

function recordOf<Name extends string, T>(names: readonly Name[], of: (i: number) => T): Record<Name, T> {
  return Object.fromEntries(names.map((name, i) => [name, of(i)])) as unknown as Record<Name, T>;
}

/**
 * A ring of time steps, each a line of counts. If the clock is set back, exchanges count for the latest step until the clock
 * reaches it again; if it is set back by more than the whole ring, the ring is cleared and follows the clock.
 */
class Ring {
  readonly #cells: Uint32Array;
  readonly #stepMs: number;
  readonly #steps: number;
  readonly #width: number;
  #current = 0;
  /** Index at which the line of the current step begins. */
  #at = 0;

  constructor(stepMs: number, steps: number, columns: number) {
    this.#stepMs = stepMs;
    this.#steps = steps;
    this.#width = columns;
    this.#cells = new Uint32Array(steps * columns);
  }

  add(nowMs: number, column: number): void {
    if (Math.floor(nowMs / this.#stepMs) !== this.#current) this.advance(nowMs);
    const at = this.#at + column;
    this.#cells[at] = (this.#cells[at] as number) + 1;
  }

  /** Moves on to the step of `nowMs`, clears the steps in between, and returns the end of the new step in milliseconds. */
  advance(nowMs: number): number {
    const step = Math.floor(nowMs / this.#stepMs);
    if (step < this.#current - this.#steps) this.#current = step - this.#steps;
    if (step > this.#current) {
      for (let past = Math.max(this.#current + 1, step - this.#steps + 1); past <= step; past++) {
        const from = (past % this.#steps) * this.#width;
        this.#cells.fill(0, from, from + this.#width);
      }
      this.#current = step;
      this.#at = (step % this.#steps) * this.#width;
    }
    return (this.#current + 1) * this.#stepMs;
  }

  column(column: number): number[] {
    return Array.from({ length: this.#steps }, (_, i) => this.#cells[this.#line(i) + column] ?? 0);
  }

  /** The sums of all steps, by column. */
  sums(): Uint32Array {
    const sums = new Uint32Array(this.#width);
    for (const [at, count] of this.#cells.entries()) {
      const column = at % this.#width;
      sums[column] = (sums[column] as number) + count;
    }
    return sums;
  }

  percentilesAt(column: number): Record<Percentile, (number | null)[]> {
    const found: Record<Percentile, (number | null)[]> = { p50: [], p95: [], p99: [] };
    for (let i = 0; i < this.#steps; i++) {
      const from = this.#line(i) + column;
      const counts = this.#cells.subarray(from, from + buckets);
      for (const [name, share] of Object.entries(percentiles)) {
        found[name as Percentile].push(percentileOf(counts, share));
      }
    }
    return found;
  }

  #line(i: number): number {
    return ((this.#current + 1 + i) % this.#steps) * this.#width;
  }
}

function bucketOf(ms: number): number {
  if (!(ms > leastMs)) return 0;
  return Math.min(buckets - 1, Math.floor(Math.log2(ms / leastMs) * bucketsPerOctave));
}

/**
 * In milliseconds, interpolated within the bucket: wrong by one bucket at most (26 %). Null: no count. Exported for its
 * tests.
 */
function percentileOf(counts: Uint32Array, share: number): number | null {
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
