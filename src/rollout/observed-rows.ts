import { createHash, hash } from 'node:crypto';
import { type ProtectedResource, resourceId } from '../access/protected-list.ts';
import { finish, finishInSlices, type Steps } from '../lib/slices.ts';
import { dayMs } from './counts.ts';

/** Row under which requests are counted that no row names. */
export const noRow = '*';

export type ListedRow = Pick<ProtectedResource, 'method' | 'template' | 'scopes' | 'observe'>;

/** Requests that an observed row decided, whatever became of them: 0 would-be refusals of 0 requests prove nothing. */
export interface Asked {
  readonly lastSeenMs: number;
  /** Number of the day since the epoch -> requests; today and the eight days before. */
  readonly days: Readonly<Record<string, number>>;
}

/** Row -> what was asked of it. */
export type AskedRows = Readonly<Record<string, Asked>>;

/** Days that are told apart besides today: what a span of seven days touches. */
export const askedDays = 8;

/** Rows by template and method. */
export class RowIndex {
  readonly #templates = new Map<string, { readonly first: string; readonly own: Map<string, string> }>();

  add(row: Pick<ListedRow, 'method' | 'template'>): void {
    const id = resourceId(row);
    const template = this.#templates.get(row.template);
    if (template === undefined) {
      this.#templates.set(row.template, { first: id, own: new Map([[row.method, id]]) });
    } else template.own.set(row.method, id);
  }

  /**
   * The row that a request counts for: that of its own method and template, else the one of any method, else the first of
   * the template. Undefined: there is none.
   */
  find(method: string, route: string): string | undefined {
    if (route === noRow) return noRow;
    const template = this.#templates.get(route);
    return template && (template.own.get(method) ?? template.own.get('ANY') ?? template.first);
  }
}

interface Counter {
  lastSeenMs: number;
  readonly days: Map<number, number>;
}

interface ObservedRowsOptions {
  /** The same array as long as the list is the same. */
  rows(): readonly ListedRow[];
  /** Everything is in observe mode. */
  readonly isObserving: boolean;
  /** What of the configuration decides, as text. */
  readonly rules: string;
  now(): number;
}

/** The rows that only observe: since when each is so, by which rule, and how often it was asked. */
export class ObservedRows {
  readonly #options: ObservedRowsOptions;
  #list: readonly ListedRow[] | undefined;
  #reading: Promise<void> | undefined;
  #index = new RowIndex();
  readonly #asked = new Map<string, Counter>();
  /** Row -> digest of its rule. */
  rules: ReadonlyMap<string, string> = new Map();
  /** Row -> since when it observes by that rule. */
  since: Readonly<Record<string, number>> = {};
  /** Of all rules together: replicas that differ are reported. */
  digest = '';

  constructor(options: ObservedRowsOptions) {
    this.#options = options;
  }

  /** Follows the list, which may have 60,000 rows, and holds up nobody; `rules` is another map where it has changed. */
  async refresh(): Promise<void> {
    while (this.#list !== this.#options.rows()) {
      this.#reading ??= finishInSlices(this.#read(this.#options.rows())).finally(() => {
        this.#reading = undefined;
      });
      await this.#reading;
    }
  }

  *#read(list: readonly ListedRow[]): Steps<void> {
    const { isObserving, rules, now } = this.#options;
    const index = new RowIndex();
    const ruleOfRows = new Map<string, string>();
    const digests = new Map<string, string>();
    const all = createHash('sha256');
    const isQuiet = !isObserving && !list.some(({ observe }) => observe);
    for (const row of list) {
      yield;
      if (isQuiet) break;
      index.add(row);
      if (!isObserving && !row.observe) continue;
      const asks = JSON.stringify([row.scopes, rules]);
      const digest = digests.get(asks) ?? digestOf(asks);
      digests.set(asks, digest);
      ruleOfRows.set(resourceId(row), digest);
      all.update(`${resourceId(row)} ${digest}\n`);
    }
    if (isObserving) ruleOfRows.set(noRow, digestOf(rules));
    const since: Record<string, number> = {};
    for (const [row, rule] of ruleOfRows) {
      yield;
      since[row] = (this.rules.get(row) === rule ? this.since[row] : undefined) ?? now();
    }
    this.since = since;
    this.rules = ruleOfRows;
    this.digest = all.update(rules).digest('hex').slice(0, 16);
    this.#index = index;
    this.#list = list;
    for (const row of this.#asked.keys()) if (!ruleOfRows.has(row)) this.#asked.delete(row);
  }

  /** Nothing where no row observes, else a few look-ups. */
  note(method: string, route: string): void {
    if (this.rules.size === 0) return;
    const row = this.#index.find(method, route);
    if (row === undefined || !this.rules.has(row)) return;
    const nowMs = this.#options.now();
    const counter = this.#asked.get(row) ?? { lastSeenMs: nowMs, days: new Map() };
    this.#asked.set(row, counter);
    const day = Math.floor(nowMs / dayMs);
    if (!counter.days.has(day)) {
      for (const old of counter.days.keys()) if (old < day - askedDays) counter.days.delete(old);
    }
    counter.days.set(day, (counter.days.get(day) ?? 0) + 1);
    counter.lastSeenMs = nowMs;
  }

  /** What was asked since it was last taken: what is counted while it is read does not count for it. */
  asked(): Steps<AskedRows> {
    return describeAsked([...this.#asked]);
  }

  /** The same at once, and forgets it. */
  takeAsked(): AskedRows {
    const asked = finish(describeAsked([...this.#asked]));
    this.#asked.clear();
    return asked;
  }
}

function* describeAsked(all: readonly (readonly [string, Counter])[]): Steps<AskedRows> {
  const asked: Record<string, Asked> = {};
  for (const [row, { lastSeenMs, days }] of all) {
    yield;
    asked[row] = { lastSeenMs, days: Object.fromEntries(days) };
  }
  return asked;
}

function digestOf(text: string): string {
  return hash('sha256', text, 'hex').slice(0, 16);
}

/** What several have counted, as one. */
export function* combineAsked(lists: readonly AskedRows[]): Steps<AskedRows> {
  const combined: Record<string, Asked> = {};
  for (const list of lists) {
    for (const row in list) {
      yield;
      const one = list[row];
      if (one === undefined) continue;
      const days = { ...combined[row]?.days };
      for (const [day, requests] of Object.entries(one.days)) days[day] = (days[day] ?? 0) + requests;
      const lastSeenMs = Math.max(combined[row]?.lastSeenMs ?? 0, one.lastSeenMs);
      combined[row] = { lastSeenMs, days };
    }
  }
  return combined;
}
