import { hash } from 'node:crypto';
import { type ProtectedResource, resourceId } from '../access/protected-list.ts';
import { singleFlight } from '../lib/eventually.ts';
import { finishInSlices, type Steps } from '../lib/slices.ts';
import type { FreshRow } from '../telemetry/decision-counts.ts';
import type { MetRow } from './counts.ts';

/** The row of requests that match no row. */
export const noRow = '*';

export type ListedRow = Pick<
  ProtectedResource,
  'method' | 'template' | 'scopes' | 'anyScopes' | 'require' | 'proof' | 'observe'
>;

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

export interface ObservedRowsOptions {
  /** Returns the same object until the list, or the result of `isObserving` or `rules`, changes. */
  rows(): Iterable<ListedRow>;
  /** Whether the whole proxy observes. */
  isObserving(): boolean;
  /** The settings that decide on refusals, as text. */
  rules(): string;
}

/** The rows in observe mode, and the rule of each. */
export class ObservedRows {
  readonly #options: ObservedRowsOptions;
  #list: Iterable<ListedRow> | undefined;
  readonly #readRows = singleFlight(() => finishInSlices(this.#read(this.#options.rows())));
  #index = new RowIndex();
  /** Row -> digest of its rule. */
  rules: ReadonlyMap<string, string> = new Map();
  /** Rows that are no longer observed, until the owner has removed them. */
  readonly gone: string[] = [];

  constructor(options: ObservedRowsOptions) {
    this.#options = options;
  }

  /** Updates the rows from the list, in slices, since it may have 60,000. */
  async refresh(): Promise<void> {
    while (this.isOutdated) await this.#readRows();
  }

  /** Whether the list was edited since it was read. */
  get isOutdated(): boolean {
    return this.#list !== this.#options.rows();
  }

  *#read(list: Iterable<ListedRow>): Steps<void> {
    const [isObserving, rules] = [this.#options.isObserving(), this.#options.rules()];
    const index = new RowIndex();
    const ruleOfRows = new Map<string, string>();
    const digests = new Map<string, string>();
    for (const row of list) {
      yield;
      index.add(row);
      if (!isObserving && !row.observe) continue;
      const asks = JSON.stringify([row.scopes, row.anyScopes, row.require, row.proof, rules]);
      const digest = digests.get(asks) ?? digestOf(asks);
      digests.set(asks, digest);
      ruleOfRows.set(resourceId(row), digest);
    }
    if (isObserving) ruleOfRows.set(noRow, digestOf(rules));
    for (const row of this.rules.keys()) {
      yield;
      if (!ruleOfRows.has(row)) this.gone.push(row);
    }
    this.rules = ruleOfRows;
    this.#index = index;
    this.#list = list;
  }

  /** Requests by observed row; those of enforced rows prove nothing. */
  *countMet(rows: readonly FreshRow[]): Steps<ReadonlyMap<string, MetRow>> {
    const met = new Map<string, MetRow>();
    for (const { row, ...fresh } of rows) {
      yield;
      const id = this.#index.find(row.method, row.route);
      const rule = id === undefined ? undefined : this.rules.get(id);
      if (id === undefined || rule === undefined) continue;
      const known = met.get(id);
      met.set(id, {
        rule,
        sinceMs: Math.min(known?.sinceMs ?? fresh.sinceMs, fresh.sinceMs),
        lastSeenMs: Math.max(known?.lastSeenMs ?? 0, fresh.lastSeenMs),
        requests: (known?.requests ?? 0) + fresh.requests,
      });
    }
    return met;
  }

  /** Only counts by the current rule of each row. */
  *ofThisRule(all: Readonly<Record<string, MetRow>>): Steps<Record<string, MetRow>> {
    const met: Record<string, MetRow> = {};
    for (const [row, rule] of this.rules) {
      yield;
      const one = all[row];
      if (one?.rule === rule) met[row] = one;
    }
    return met;
  }
}

function digestOf(text: string): string {
  return hash('sha256', text, 'hex').slice(0, 16);
}
