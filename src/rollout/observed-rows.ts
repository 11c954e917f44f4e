import { createHash, hash } from 'node:crypto';
import { type ProtectedResource, resourceId } from '../access/protected-list.ts';
import { finishInSlices, type Steps } from '../lib/slices.ts';
import type { FreshRow } from '../telemetry/decision-counts.ts';
import { addDays } from './counts.ts';

/** Counts as the row of requests that match none. */
export const noRow = '*';

export type ListedRow = Pick<
  ProtectedResource,
  'method' | 'template' | 'scopes' | 'anyScopes' | 'require' | 'proof' | 'observe'
>;

/** Requests that an observed row decided, refused or not: without any, "0 would-be refusals" proves nothing. */
export interface Asked {
  readonly lastSeenMs: number;
  /** Number of the day since the epoch -> requests; today and the eight days before. */
  readonly days: Readonly<Record<string, number>>;
}

/** Row -> its requests. */
export type AskedRows = Readonly<Record<string, Asked>>;

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
   * The row that a request counts for: the one with its method and template, else the one with ANY, else the first with the
   * template. Undefined: there is none.
   */
  find(method: string, route: string): string | undefined {
    if (route === noRow) return noRow;
    const template = this.#templates.get(route);
    return template && (template.own.get(method) ?? template.own.get('ANY') ?? template.first);
  }
}

interface ObservedRowsOptions {
  /** Gives the same rows until the list, or what `isObserving` and `rules` say, changes. */
  rows(): Iterable<ListedRow>;
  /** Whether the whole proxy is in observe mode. */
  isObserving(): boolean;
  /** The settings that decide on refusals, as text. */
  rules(): string;
  now(): number;
}

/** The rows in observe mode: since when, and by which rule. */
export class ObservedRows {
  readonly #options: ObservedRowsOptions;
  #list: Iterable<ListedRow> | undefined;
  #reading: Promise<void> | undefined;
  #index = new RowIndex();
  /** Row -> digest of its rule. */
  rules: ReadonlyMap<string, string> = new Map();
  /** Row -> since when it observes by that rule, milliseconds since the epoch. */
  since: Readonly<Record<string, number>> = {};
  /** When this list was first seen, milliseconds since the epoch. */
  seenMs = 0;
  /** Digest of all rules together, by which replicas that differ are noticed. */
  digest = '';

  constructor(options: ObservedRowsOptions) {
    this.#options = options;
  }

  /** Updates the rows from the list, in slices, since it may have 60,000. Replaces the map `rules` where it has changed. */
  async refresh(): Promise<void> {
    while (this.#list !== this.#options.rows()) {
      this.#reading ??= finishInSlices(this.#read(this.#options.rows())).finally(() => {
        this.#reading = undefined;
      });
      await this.#reading;
    }
  }

  *#read(list: Iterable<ListedRow>): Steps<void> {
    const { now } = this.#options;
    const [isObserving, rules] = [this.#options.isObserving(), this.#options.rules()];
    // Before the first step: a refusal by this list is not older.
    const seenMs = now();
    const index = new RowIndex();
    const ruleOfRows = new Map<string, string>();
    const digests = new Map<string, string>();
    const all = createHash('sha256');
    const isNeeded = isObserving || (yield* isAnyObserved(list));
    for (const row of isNeeded ? list : []) {
      yield;
      index.add(row);
      if (!isObserving && !row.observe) continue;
      const asks = JSON.stringify([
        row.scopes,
        row.anyScopes,
        row.require,
        rules,
        ...(row.proof ? [row.proof] : []),
      ]);
      const digest = digests.get(asks) ?? digestOf(asks);
      digests.set(asks, digest);
      ruleOfRows.set(resourceId(row), digest);
      all.update(`${resourceId(row)} ${digest}\n`);
    }
    if (isObserving) ruleOfRows.set(noRow, digestOf(rules));
    const since: Record<string, number> = {};
    for (const [row, rule] of ruleOfRows) {
      yield;
      since[row] = (this.rules.get(row) === rule ? this.since[row] : undefined) ?? seenMs;
    }
    this.since = since;
    this.seenMs = seenMs;
    this.rules = ruleOfRows;
    this.digest = all.update(rules).digest('hex').slice(0, 16);
    this.#index = index;
    this.#list = list;
  }

  /** Whether the list was edited since it was read. */
  get isOutdated(): boolean {
    return this.#list !== undefined && this.#list !== this.#options.rows();
  }

  /** Requests by observed row; those of other rows prove nothing. */
  *askedOf(passed: readonly FreshRow[]): Steps<AskedRows> {
    const asked: Record<string, Asked> = {};
    for (const { row, lastSeenMs, days } of passed) {
      yield;
      const id = this.#index.find(row.method, row.route);
      if (id !== undefined && this.rules.has(id))
        addAsked(asked, id, { lastSeenMs, days: Object.fromEntries(days) });
    }
    return asked;
  }
}

function* isAnyObserved(list: Iterable<ListedRow>): Steps<boolean> {
  for (const { observe } of list) {
    if (observe) return true;
    yield;
  }
  return false;
}

function addAsked(sums: Record<string, Asked>, row: string, { lastSeenMs, days }: Asked): void {
  const known = sums[row];
  sums[row] = {
    lastSeenMs: Math.max(known?.lastSeenMs ?? 0, lastSeenMs),
    days: addDays(known?.days ?? {}, days),
  };
}

function digestOf(text: string): string {
  return hash('sha256', text, 'hex').slice(0, 16);
}

/** Adds up the requests that several processes have counted. */
export function* combineAsked(lists: readonly AskedRows[]): Steps<AskedRows> {
  const combined: Record<string, Asked> = {};
  for (const list of lists) {
    for (const row in list) {
      yield;
      const one = list[row];
      if (one !== undefined) addAsked(combined, row, one);
    }
  }
  return combined;
}
