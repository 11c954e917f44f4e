import { randomUUID } from 'node:crypto';
import type { PurgeEntry } from './purge.ts';
import { PurgeHistory } from './purge-history.ts';
import type { PurgeLog, PurgeReading } from './purge-log.ts';

/** A subscription that is dead without saying so is found out by a look at the log this often. */
const lookEveryMs = 1000;

/** Keeps one `PurgeHistory` up with the log: the transitions of docs/decisions/url-mapping-purge.md. */
export class PurgeFollower {
  /** Begins on a past of its own, which the first reading of the log replaces. */
  readonly history = new PurgeHistory({ seq: 0, id: randomUUID() });
  readonly #log: PurgeLog;
  readonly #forget: () => void;
  #reading: Promise<void> | undefined;
  #readAgain = false;
  #unsubscribe: (() => void) | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** `forget` drops every entry of the process: called when the log shows another past. */
  constructor(log: PurgeLog, forget: () => void) {
    this.#log = log;
    this.#forget = forget;
  }

  /** Subscribes, then reads the log once; a log that is away is read later. */
  async start(): Promise<void> {
    this.#unsubscribe = this.#log.subscribe({
      onEntry: (entry) => this.hear(entry),
      onGap: () => void this.catchUp(),
    });
    this.#timer = setInterval(() => void this.catchUp(), lookEveryMs).unref();
    await this.catchUp();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#unsubscribe?.();
  }

  /** Reads the log from the own position on. Never rejects. A call during a reading causes one more. */
  catchUp(): Promise<void> {
    if (this.#reading !== undefined) {
      this.#readAgain = true;
      return this.#reading;
    }
    this.#reading = this.#read().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  /** Takes an entry over if it is the next one; reads the log if something is missing in between. */
  hear(entry: PurgeEntry): void {
    if (this.#follows(entry)) this.history.append(entry);
    else if (this.history.idAt(entry.seq) !== entry.id) void this.catchUp();
  }

  async #read(): Promise<void> {
    do {
      this.#readAgain = false;
      try {
        this.#take(await this.#log.read(this.history.position));
      } catch {
        // Away. The next look, or the reconnection, reads it.
        return;
      }
    } while (this.#readAgain);
  }

  #take(reading: PurgeReading): void {
    if (reading.kind === 'another-past') {
      this.history.restart(reading.position);
      this.#forget();
      return;
    }
    // A message may have overtaken the reading: the entry is then known already.
    for (const entry of reading.entries) if (this.#follows(entry)) this.history.append(entry);
  }

  #follows(entry: PurgeEntry): boolean {
    const { seq, id } = this.history.position;
    return entry.seq === seq + 1 && entry.previousId === id;
  }
}
