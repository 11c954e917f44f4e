import { copyText } from '../lib/copy-text.ts';
import type { ExchangeRecord } from '../telemetry/exchange-record.ts';

/** A decision as the console shows it. */
export interface Decision extends ExchangeRecord {
  /** Counts from 1 at the start of the process. */
  readonly seq: number;
  /** Milliseconds since the epoch. */
  readonly atMs: number;
}

/** The last decisions; whoever reads too late has missed some. */
export interface DecisionLog {
  note(record: ExchangeRecord, nowMs: number): void;
  /** Number of the last one; 0: none yet. */
  readonly last: number;
  /** Those after `seq` that are still kept, the oldest first. */
  since(seq: number): Decision[];
}

/** Every field of a record: one that is added and not kept does not compile. */
type Kept = { [K in keyof Required<ExchangeRecord>]: ExchangeRecord[K] };

/** Octets for a text that is new with each request; of a longer one a copy is kept. */
const textBytes = 128;

export const createDecisionLog = (capacity = 5_000): DecisionLog => new DecisionRing(capacity);

/**
 * A ring of columns that were allocated at the start. A record that is kept outlives two collections of young objects and is
 * then only found by one of the whole heap; that was nine tenths of all that a request left to those. So nothing of a
 * record is kept but numbers, words that outlive it anyway, and the octets of what was new.
 */
class DecisionRing implements DecisionLog {
  last = 0;
  readonly #capacity: number;
  readonly #requestIds: TextColumn;
  readonly #paths: TextColumn;
  readonly #times: Float64Array;
  readonly #durations: Float64Array;
  readonly #upstreamTimes: Float64Array;
  readonly #statuses: Uint16Array;
  readonly #words: Words[];

  constructor(capacity: number) {
    this.#capacity = capacity;
    this.#requestIds = new TextColumn(capacity);
    this.#paths = new TextColumn(capacity);
    this.#times = new Float64Array(capacity);
    this.#durations = new Float64Array(capacity);
    this.#upstreamTimes = new Float64Array(capacity);
    this.#statuses = new Uint16Array(capacity);
    this.#words = Array.from({ length: capacity }, emptyWords);
  }

  note(record: ExchangeRecord, nowMs: number): void {
    this.last += 1;
    const at = this.last % this.#capacity;
    this.#times[at] = nowMs;
    this.#requestIds.write(at, record.requestId);
    this.#paths.write(at, record.path);
    this.#statuses[at] = record.status;
    this.#durations[at] = record.durationMs;
    this.#upstreamTimes[at] = record.upstreamMs ?? Number.NaN;
    const words = this.#words[at] as Words;
    words.method = record.method;
    words.route = record.route;
    words.decision = record.decision;
    words.rejection = record.rejection;
    words.reason = record.reason;
    words.observed = record.observed;
    words.clientAddress = record.clientAddress;
    words.fault = record.fault;
  }

  since(seq: number): Decision[] {
    const found: Decision[] = [];
    for (let one = Math.max(seq, this.last - this.#capacity, 0) + 1; one <= this.last; one++)
      found.push(this.#read(one));
    return found;
  }

  #read(seq: number): Decision {
    const at = seq % this.#capacity;
    const upstreamMs = this.#upstreamTimes[at] as number;
    const kept: Kept = {
      ...(this.#words[at] as Words),
      requestId: this.#requestIds.read(at),
      path: this.#paths.read(at),
      status: this.#statuses[at] as number,
      durationMs: this.#durations[at] as number,
      upstreamMs: Number.isNaN(upstreamMs) ? undefined : upstreamMs,
    };
    return { seq, atMs: this.#times[at] as number, ...kept };
  }
}

/** Texts that stand elsewhere as well: constants, templates of the list, the address of a connection. */
type Words = {
  -readonly [K in Exclude<
    keyof Kept,
    'requestId' | 'path' | 'status' | 'durationMs' | 'upstreamMs'
  >]: Kept[K];
};

const emptyWords = (): Words => ({
  method: 'other',
  route: '',
  decision: 'forwarded',
  rejection: undefined,
  reason: undefined,
  observed: undefined,
  clientAddress: '',
  fault: undefined,
});

/** Texts that are new with each request. */
class TextColumn {
  readonly #octets: Buffer;
  readonly #lengths: Uint8Array;
  readonly #long: (string | undefined)[];

  constructor(capacity: number) {
    this.#octets = Buffer.alloc(capacity * textBytes);
    this.#lengths = new Uint8Array(capacity);
    this.#long = new Array(capacity).fill(undefined);
  }

  write(at: number, text: string): void {
    // In UTF-8 a character takes three octets at most, in as many as it has units.
    const fits =
      text.length * 3 <= textBytes || (text.length <= textBytes && Buffer.byteLength(text) <= textBytes);
    this.#long[at] = fits ? undefined : copyText(text);
    if (fits) this.#lengths[at] = this.#octets.write(text, at * textBytes, textBytes, 'utf8');
  }

  read(at: number): string {
    const start = at * textBytes;
    return this.#long[at] ?? this.#octets.toString('utf8', start, start + (this.#lengths[at] ?? 0));
  }
}
