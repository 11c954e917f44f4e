import {
  bounds,
  type Counting,
  type MetRow,
  type RefusalCount,
  type RolloutBatch,
  type RolloutCounts,
  readRefusal,
  safeAfterMs,
} from './counts.ts';

/** The counts of one process, for the memory store. Adds up as the script in lua.ts does. */
export class MemoryCounts implements RolloutCounts {
  readonly #rows: Record<string, MetRow> = {};
  readonly #refusals = new Map<string, RefusalCount>();
  readonly #now: () => number;
  #wholeSinceMs: number;
  #why = 'the memory store counts since the start of the process';

  constructor(now: () => number = Date.now) {
    this.#now = now;
    this.#wholeSinceMs = now();
  }

  async write({ rows, refusals, lost }: RolloutBatch): Promise<void> {
    for (const [row, fresh] of Object.entries(rows)) this.#rows[row] = addRow(this.#rows[row], fresh);
    for (const [name, fresh] of Object.entries(refusals)) {
      const known = this.#refusals.get(name);
      if (known !== undefined || this.#refusals.size < bounds.refusals)
        this.#refusals.set(name, addRefusal(known, fresh));
      else this.#noteGap('there are more rows and reasons than are kept');
    }
    if (lost !== '') this.#noteGap(lost);
  }

  async forget(rows: readonly string[]): Promise<void> {
    for (const row of rows) delete this.#rows[row];
  }

  async read(): Promise<Omit<Counting, 'problems'>> {
    const entries = [...this.#refusals].map(([name, count]) => ({ ...readRefusal(name), ...count }));
    return { rows: this.#rows, entries, wholeSinceMs: this.#wholeSinceMs, why: this.#why };
  }

  #noteGap(why: string): void {
    this.#wholeSinceMs = this.#now();
    this.#why = why;
  }
}

function addRow(known: MetRow | undefined, fresh: MetRow): MetRow {
  if (known?.rule !== fresh.rule || fresh.sinceMs - known.lastSeenMs > safeAfterMs) return fresh;
  return { ...fresh, sinceMs: known.sinceMs, requests: known.requests + fresh.requests };
}

function addRefusal(known: RefusalCount | undefined, fresh: RefusalCount): RefusalCount {
  const all = Object.entries(addEach(known?.clients ?? {}, fresh.clients)).sort(([, a], [, b]) => b - a);
  const beyond = all.slice(bounds.clients).reduce((sum, [, requests]) => sum + requests, 0);
  const days = Object.entries(addEach(known?.days ?? {}, fresh.days)).slice(-bounds.days);
  return {
    requests: (known?.requests ?? 0) + fresh.requests,
    sinceMs: known?.sinceMs ?? fresh.sinceMs,
    lastSeenMs: fresh.lastSeenMs,
    days: Object.fromEntries(days),
    clients: Object.fromEntries(all.slice(0, bounds.clients)),
    beyond: (known?.beyond ?? 0) + fresh.beyond + beyond,
  };
}

function addEach(a: Readonly<Record<string, number>>, b: typeof a): Record<string, number> {
  const sums = { ...a };
  for (const [name, requests] of Object.entries(b)) sums[name] = (sums[name] ?? 0) + requests;
  return sums;
}
