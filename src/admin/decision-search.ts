import { rejectionTable } from '../http/rejection.ts';
import type { JsonEndpoint } from './admin-endpoint.ts';
import type { Decision, DecisionLog } from './decision-log.ts';
import { outcomeOf, outcomes } from './outcome.ts';

/** Decisions of one answer: by default, and at most. */
const defaultLimit = 50;
const maxLimit = 200;
/** Of each kind that is counted for an answer, those that occur most. */
const maxCounted = 8;
const maxTextLength = 200;

/**
 * What a decision is looked for by; all of it has to fit, in whatever case, anywhere in its text. `row` is the template
 * (`*`: no row), `reason` the name of the rejection, enforced or observed, or the word for why; `q` any of them, or the whole
 * of a status, or of the error code that a rejection has by default.
 */
const texts = ['id', 'path', 'row', 'method', 'reason', 'client', 'outcome', 'q'] as const;
type DecisionFilter = Partial<Record<(typeof texts)[number], string>>;

interface DecisionSearch {
  readonly filter: Readonly<DecisionFilter>;
  readonly sinceMs: number;
  /** Only older ones than this number: the way to the next page. */
  readonly before: number;
  readonly limit: number;
}

/**
 * `GET /api/decisions/search?reason=…&client=…`: of the decisions that are still kept those that fit, the newest first,
 * and what all that fit have in common. Looks at the kept ones alone, of which there is a bounded number.
 */
export function createDecisionSearchEndpoint(log: DecisionLog): JsonEndpoint {
  return {
    method: 'GET',
    path: '/api/decisions/search',
    run({ query }) {
      const search = readSearch(new URLSearchParams(query));
      if (typeof search === 'string') return { status: 400, body: { error: search } };
      return { status: 200, body: searchDecisions(log, search) };
    },
  };
}

function readSearch(query: URLSearchParams): DecisionSearch | string {
  const filter: DecisionFilter = {};
  for (const name of texts) {
    const text = query.get(name)?.trim().toLowerCase();
    if (text === undefined || text === '') continue;
    if (text.length > maxTextLength) return `${name} may have ${maxTextLength} characters`;
    filter[name] = text;
  }
  if (filter.outcome !== undefined && !outcomes.some((one) => one === filter.outcome)) {
    return `outcome is one of ${outcomes.join(', ')}`;
  }
  const number = (name: string, fallback: number) => {
    const text = query.get(name);
    return text === null ? fallback : /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  };
  const [sinceMs, before, limit] = [
    number('sinceMs', 0),
    number('before', Number.MAX_SAFE_INTEGER),
    number('limit', defaultLimit),
  ];
  if ([sinceMs, before, limit].some(Number.isNaN)) return 'sinceMs, before and limit are whole numbers';
  return { filter, sinceMs, before, limit: Math.min(limit, maxLimit) };
}

function searchDecisions(log: DecisionLog, { filter, sinceMs, before, limit }: DecisionSearch) {
  const kept = log.since(0);
  const fitting = kept.filter((one) => one.atMs >= sinceMs && fits(one, filter)).reverse();
  const page = fitting.filter(({ seq }) => seq < before).slice(0, limit);
  const last = page.at(-1);
  return {
    /** Of how many, since when: what is older is in the log alone. */
    kept: kept.length,
    keptSinceMs: kept[0]?.atMs ?? null,
    found: fitting.length,
    decisions: page.map((one) => ({ ...one, outcome: outcomeOf(one) })),
    next: last !== undefined && fitting.at(-1) !== last ? last.seq : null,
    counts: {
      reasons: most(fitting.flatMap(({ rejection, observed }) => rejection ?? observed ?? [])),
      clients: most(fitting.map(({ clientAddress }) => clientAddress)),
      rows: most(fitting.map(({ route }) => route)),
    },
  };
}

function fits(decision: Decision, filter: DecisionFilter): boolean {
  const { requestId, path, route, method, rejection, observed, reason, clientAddress } = decision;
  const has = (wanted: string | undefined, ...values: readonly (string | undefined)[]) =>
    wanted === undefined || values.some((value) => value?.toLowerCase().includes(wanted));
  return (
    has(filter.id, requestId) &&
    has(filter.path, path) &&
    has(filter.row, route) &&
    (filter.method === undefined || method.toLowerCase() === filter.method) &&
    has(filter.reason, rejection, observed, reason) &&
    has(filter.client, clientAddress) &&
    (filter.outcome === undefined || outcomeOf(decision) === filter.outcome) &&
    (isNumberOf(decision, filter.q) ||
      has(filter.q, requestId, `${method} ${path}`, route, rejection, observed, reason, clientAddress))
  );
}

/** Whether it was answered with this status or error code, which is what a client has in hand. */
function isNumberOf({ status, rejection, observed }: Decision, wanted: string | undefined): boolean {
  if (wanted === undefined) return false;
  const named = rejection ?? observed;
  return wanted === String(status) || (named !== undefined && rejectionTable[named].code === wanted);
}

/** `[value, times]`, those that occur most. */
function most(values: readonly string[]): (readonly [string, number])[] {
  const counts = new Map<string, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]).slice(0, maxCounted);
}
