import { type FieldList, fieldValue, fieldValues } from '../http/field-list.ts';
import { type Component, type ComponentLog, gauge, type Health, healthOf } from '../lib/component.ts';
import type { ExchangeRecord } from '../telemetry/exchange-record.ts';

/** Time sources, and how many consecutive answers must differ. One is enough for keys, which are fetched every five minutes. */
const sources = {
  redis: { name: 'Redis', needed: 2 },
  shop: { name: 'the shop', needed: 2 },
  keys: { name: 'the key source', needed: 1 },
} as const;
type ClockSource = keyof typeof sources;
const all = Object.keys(sources) as ClockSource[];

/** `Date` counts whole seconds. */
const dateMs = 1_000;
/** If the clock moved by more than this against the monotonic clock, it was set, and earlier answers are void. */
const stepMs = 1_000;
/** Milliseconds between two compared answers of the shop. */
const sampleMs = 1_000;
/** An agreeing answer clears a difference only after this time without a differing one: one of several servers may be wrong. */
const calmMs = 60_000;

/** Reason of a refused token -> sign of the clock difference that may have caused it. 1: the source is ahead; -1: behind. */
const timeReasons = new Map([
  ['expired', -1],
  ['too-old', -1],
  ['not-before', 1],
  ['issued-in-future', 1],
]);

interface ClockCheckOptions {
  /** The smallest `auth.clockTolerance` of all issuers. */
  readonly toleranceMs: number;
  readonly log: ComponentLog;
  /** Defaults: `Date.now` and `performance.now`. */
  readonly now?: () => number;
  readonly monotonic?: () => number;
}

/**
 * Compares the clock of this process with that of Redis (`INFO`) and with the `Date` of the shop and of key sources. Access tokens
 * are checked by this clock, so a wrong clock refuses good tokens or accepts expired ones.
 */
export class ClockCheck implements Component {
  readonly name = 'clock';
  readonly title = false;
  readonly metrics = all.map((source) => ({
    ...gauge(
      'shopward_clock_difference_seconds',
      'Seconds by which the clock of this process certainly differs, if that is more than auth.clockTolerance.',
      'max',
      () => Math.abs(this.#offMs(source)) / 1000,
    ),
    labels: { source: sources[source].name },
  }));
  readonly #options: Required<ClockCheckOptions>;
  readonly #toleranceMs: number;
  /** Positive: the source is ahead; 0: it agrees. */
  readonly #said = new Map<
    ClockSource,
    { readonly offMs: number; readonly times: number; readonly atMs: number }
  >();
  /** Whether the next answer of the shop is compared. */
  isDue = true;
  #timer: NodeJS.Timeout | undefined;
  #distanceMs: number;
  #reported = '';

  constructor(options: ClockCheckOptions) {
    this.#options = { now: Date.now, monotonic: () => performance.now(), ...options };
    this.#toleranceMs = Math.max(options.toleranceMs, dateMs);
    this.#distanceMs = this.#options.now() - this.#options.monotonic();
  }

  async start(): Promise<void> {
    this.#timer = setInterval(() => {
      this.isDue = true;
    }, sampleMs).unref();
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
  }

  /** Takes an answer of the shop to a request that began `tookMs` ago. */
  hearShop(fields: FieldList, tookMs: number): void {
    this.isDue = false;
    this.hearDate('shop', fields, this.#options.now() - tookMs);
  }

  /** Takes the answer to a request that was sent at `askedMs`. Skips answers with `Age`, which come from a cache. */
  hearDate(source: ClockSource, fields: FieldList, askedMs: number): void {
    const date = fieldValues(fields, 'date').join();
    const shownMs = Date.parse(date);
    // Only the form of RFC 9110 section 5.6.7: `Date.parse` reads almost any text as a date.
    const isDate = shownMs >= 0 && new Date(shownMs).toUTCString() === date;
    if (isDate && fieldValue(fields, 'age') === undefined) this.hear(source, shownMs, askedMs, dateMs);
  }

  /** At some time between `askedMs` and now, the source's clock showed between `shownMs` and `shownMs + precisionMs`. */
  hear(source: ClockSource, shownMs: number, askedMs: number, precisionMs = 1): void {
    const [nowMs, atMs] = [this.#options.now(), this.#options.monotonic()];
    const distanceMs = nowMs - atMs;
    if (Math.abs(distanceMs - this.#distanceMs) > stepMs) this.#said.clear();
    this.#distanceMs = distanceMs;
    if (nowMs < askedMs) return;
    const [leastMs, mostMs] = [shownMs - nowMs, shownMs + precisionMs - askedMs];
    const offMs = leastMs > this.#toleranceMs ? leastMs : mostMs < -this.#toleranceMs ? mostMs : 0;
    const before = this.#said.get(source);
    const isAgain = before !== undefined && Math.sign(before.offMs) === Math.sign(offMs);
    if (!isAgain && this.#offMs(source) !== 0 && atMs - (before?.atMs ?? 0) < calmMs) return;
    this.#said.set(source, { offMs, times: isAgain ? before.times + 1 : 1, atMs });
    this.#report();
  }

  /** Returns the record, with the reason `clock` if a time of the token was refused and a source differs in that direction. */
  explain(record: ExchangeRecord): ExchangeRecord {
    const sign = record.reason === undefined ? undefined : timeReasons.get(record.reason);
    const isClock = sign !== undefined && all.some((source) => Math.sign(this.#offMs(source)) === sign);
    return isClock ? { ...record, reason: 'clock' } : record;
  }

  readonly health = (): Health => healthOf(this.#reasons());

  /** 0: the clocks agree, or too few answers differ. */
  #offMs(source: ClockSource): number {
    const { offMs = 0, times = 0 } = this.#said.get(source) ?? {};
    return times >= sources[source].needed ? offMs : 0;
  }

  #reasons(): string[] {
    const differing = all.filter((source) => this.#offMs(source) !== 0);
    const agreeing = all.filter((one) => this.#said.get(one)?.offMs === 0).map((one) => sources[one].name);
    const also = agreeing.length === 0 ? '' : `, and this machine agrees with ${agreeing.join(' and ')}`;
    return differing.map((source) => {
      const offMs = this.#offMs(source);
      const pair = ['this machine', sources[source].name];
      const [ahead, other] = offMs > 0 ? pair.toReversed() : pair;
      const seconds = Math.round(Math.abs(offMs) / 1000);
      return `clock: ${ahead} is ${seconds} s ahead of ${other}${also}; auth.clockTolerance is ${this.#options.toleranceMs / 1000}s: check NTP`;
    });
  }

  /** Logs a line when a source begins to differ, and when all agree again. */
  #report(): void {
    const differing = all.filter((source) => this.#offMs(source) !== 0);
    if (differing.join() === this.#reported) return;
    this.#reported = differing.join();
    const { log } = this.#options;
    if (differing.length === 0) log.info({ event: 'clock' }, 'the clocks agree again');
    else log.error({ event: 'clock', sources: differing }, this.#reasons().join('; '));
  }
}
