import { rejectionTable } from '../http/rejection.ts';
import { finishInSlices } from '../lib/slices.ts';
import type { AdminEndpoint } from './admin-endpoint.ts';
import type { Decision, DecisionLog } from './decision-log.ts';
import { outcomes } from './outcome.ts';
import {
  longestSearch,
  type Query,
  type QueryParameter,
  type QueryParameters,
  wholeNumber,
} from './query.ts';

/** Decisions in one response. */
const defaultLimit = 50;
const maxLimit = 200;
/** A response counts at most this many reasons, clients and rows: the most frequent ones. */
const maxCounted = 8;

const text = { type: 'string', maxLength: longestSearch } as const satisfies QueryParameter;

/** A decision must match every given parameter. A text may be any part of the value, in any case. */
const filters = {
  id: text,
  path: text,
  /** Template of the row; `*`: no row. */
  row: text,
  /** Matches only as a whole. */
  method: text,
  /** Name of the rejection, enforced or observed, or its detail. */
  reason: text,
  client: text,
  outcome: { type: 'string', enum: outcomes },
  /** A part of any text above, or a whole status or error code. Codes set by `rejections` are not found. */
  q: text,
} as const;
type DecisionFilter = Partial<Record<keyof typeof filters, string>>;

const parameters: QueryParameters = {
  ...filters,
  sinceMs: wholeNumber(),
  /** Only decisions before this `seq`: `next` of the previous page. */
  before: wholeNumber(),
  limit: wholeNumber(),
};

/** Maximum number of searches that may run or wait at once. */
const mostAsked = 8;

/**
 * `GET /api/decisions/search?reason=…&client=…`: a page of the decisions that match, the newest first, and the most
 * frequent reasons, clients and rows among all that match. Only decisions that the decision log still keeps are searched.
 */
export function createDecisionSearchEndpoint(log: DecisionLog): AdminEndpoint {
  let last: Promise<unknown> = Promise.resolve();
  let asked = 0;
  return {
    method: 'GET',
    path: '/api/decisions/search',
    parameters,
    async run({ query }) {
      if (asked >= mostAsked) return { status: 503, body: { error: 'too many searches at once: try again' } };
      asked += 1;
      // One at a time, because a search takes time from the event loop that serves the shop's requests.
      const search = last.then(() => finishInSlices(searchDecisions(log, readSearch(query))));
      last = search.catch(() => {});
      const body = await search.finally(() => {
        asked -= 1;
      });
      return { status: 200, body };
    },
  };
}

function readSearch(query: Query) {
  const filter: DecisionFilter = {};
  for (const name of Object.keys(filters) as readonly (keyof typeof filters)[]) {
    const wanted = query.get(name)?.trim().toLowerCase();
    if (wanted) filter[name] = wanted;
  }
  return {
    filter,
    sinceMs: Number(query.get('sinceMs') ?? 0),
    before: Number(query.get('before') ?? Number.MAX_SAFE_INTEGER),
    limit: Math.min(Number(query.get('limit') ?? defaultLimit), maxLimit),
  };
}

function* searchDecisions(log: DecisionLog, search: ReturnType<typeof readSearch>) {
  const { filter, sinceMs, before, limit } = search;
  const kept = log.decisions();
  const fitting: Decision[] = [];
  for (const one of kept) {
    yield;
    if (one.atMs >= sinceMs && fits(one, filter)) fitting.push(one);
  }
  const page = fitting.filter(({ seq }) => seq < before).slice(0, limit);
  const last = page.at(-1);
  return {
    /** How many decisions were searched, and the time of the oldest: earlier ones are only in the log. */
    kept: kept.length,
    keptSinceMs: kept.at(-1)?.atMs ?? null,
    found: fitting.length,
    decisions: page,
    next: last !== undefined && fitting.at(-1) !== last ? last.seq : null,
    counts: {
      reasons: most(fitting.flatMap(({ rejection, observed }) => rejection ?? observed ?? [])),
      clients: most(fitting.map(({ clientAddress }) => clientAddress)),
      rows: most(fitting.map(({ route }) => route)),
    },
  };
}

function fits(decision: Decision, filter: Readonly<DecisionFilter>): boolean {
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
    (filter.outcome === undefined || decision.outcome === filter.outcome) &&
    (isNumberOf(decision, filter.q) ||
      has(filter.q, requestId, `${method} ${path}`, route, rejection, observed, reason, clientAddress))
  );
}

/** Whether the decision has this status or error code. A client can report both. */
function isNumberOf({ status, rejection, observed }: Decision, wanted: string | undefined): boolean {
  if (wanted === undefined) return false;
  const named = rejection ?? observed;
  return wanted === String(status) || (named !== undefined && rejectionTable[named].code === wanted);
}

/** `[value, times]` of the most frequent values. */
function most(values: readonly string[]): (readonly [string, number])[] {
  const counts = new Map<string, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]).slice(0, maxCounted);
}
