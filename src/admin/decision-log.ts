import { copyText } from '../lib/text.ts';
import type { ExchangeRecord } from '../telemetry/exchange-record.ts';

/** A decision as the console shows it. */
export interface Decision extends Omit<ExchangeRecord, 'bytesIn' | 'bytesOut'> {
  /** Counts from 1 at the start of the process. */
  readonly seq: number;
  /** Milliseconds since the epoch. */
  readonly atMs: number;
}

/** Every field of a record but the numbers of octets, so that a new one that is not kept here fails to compile. */
type Kept = { [K in Exclude<keyof Required<ExchangeRecord>, 'bytesIn' | 'bytesOut'>]: ExchangeRecord[K] };

/** Octets reserved for the request id and for the path of each decision; a longer one is kept as a string of its own. */
const textBytes = 128;

/**
 * The last decisions. The oldest are overwritten, whether or not anybody has read them.
 *
 * A ring of columns, allocated once: a ring of records would promote each of them to V8's old generation, which only a full
 * collection frees. So it keeps of a record only numbers, strings that live elsewhere anyway, and the octets of the
 * strings that are new with each request.
 */
export class DecisionLog {
  /** Number of the last one; 0: none yet. */
  last = 0;
  readonly #capacity: number;
  readonly #requestIds: TextColumn;
  readonly #paths: TextColumn;
  readonly #times: Float64Array;
  readonly #durations: Float64Array;
  readonly #upstreamTimes: Float64Array;
  readonly #statuses: Uint16Array;
  readonly #words: Words[];

  constructor(capacity = 5_000) {
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
    words.userAgent = record.userAgent;
    words.clientAddress = record.clientAddress;
    words.fault = record.fault;
  }

  /** At most `most` kept decisions after `seq`, oldest first. */
  since(seq: number, most = this.#capacity): Decision[] {
    const first = Math.max(seq, this.last - this.#capacity, 0) + 1;
    const found: Decision[] = [];
    for (let one = first; one <= this.last && one < first + most; one++) found.push(this.#read(one));
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

/** Strings that live elsewhere anyway: constants, templates of the list, the address of a connection. */
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
  userAgent: undefined,
  clientAddress: '',
  fault: undefined,
});

/** A column of strings that are new with each request. */
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
    // In UTF-8 a UTF-16 unit takes three octets at most, so that most texts need not be measured.
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
