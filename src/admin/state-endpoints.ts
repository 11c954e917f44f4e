import type { RowSequence } from '../access/protected-list.ts';
import { type DecisionCounts, sumRows } from '../telemetry/decision-counts.ts';
import { isShortEnough, maxUrlBytes } from '../url-resolver/envelope.ts';
import type { UrlResolver } from '../url-resolver/filter.ts';
import type { Purge } from '../url-resolver/purges.ts';
import { type AdminEndpoint, fieldsOf } from './admin-endpoint.ts';
import type { Drift } from './drift.ts';
import type { Condition, Incidents } from './incidents.ts';
import type { ListHistory } from './list-history.ts';
import { isRange, ranges, sumOf, type Trends } from './trends.ts';

interface StateOptions {
  readonly version: string;
  readonly startedMs: number;
  mode(): 'enforce' | 'observe';
  readonly now: () => number;
  readonly decisions: DecisionCounts;
  readonly trends: Trends;
  readonly incidents: Pick<Incidents, 'current' | 'past' | 'restarts'>;
  /** Reads the condition now, and updates the incidents from it, so that all parts of a response agree. */
  look(): Promise<Condition>;
  readonly drift: Drift;
  readonly history: Pick<ListHistory, 'edits'>;
  readonly list: {
    readonly file: string;
    rows(): RowSequence;
    readonly reloads: { readonly succeeded: number; readonly failed: number; readonly lastSuccessMs: number };
  };
}

/** `GET /api/state`: the console's first screen. `GET /api/series?range=1h`: its charts. */
export function createStateEndpoints(options: StateOptions): readonly AdminEndpoint[] {
  const { trends, now } = options;
  return [
    {
      method: 'GET',
      path: '/api/series',
      parameters: { range: { type: 'string', enum: Object.keys(ranges) } },
      run({ query }) {
        const range = query.get('range') ?? '';
        // The counts before the start are unknown, not zero.
        const reading = trends.read(isRange(range) ? range : '5m', now());
        return { status: 200, body: { ...reading, sinceMs: options.startedMs, marks: marksOf(options) } };
      },
    },
    {
      method: 'GET',
      path: '/api/state',
      run: async () => ({ status: 200, body: await describeState(options) }),
    },
  ];
}

async function describeState(options: StateOptions) {
  const { decisions, trends, drift, list, now } = options;
  const { ready, reasons, parts, problems } = await options.look();
  const nowMs = now();
  const rows = list.rows();
  const { succeeded, failed, lastSuccessMs } = list.reloads;
  const { outcomes } = trends.readOutcomes('5m', nowMs);
  return {
    version: options.version,
    pid: process.pid,
    startedMs: options.startedMs,
    nowMs,
    mode: options.mode(),
    ready,
    reasons,
    incidents: options.incidents.current(),
    pastIncidents: options.incidents.past(),
    list: {
      file: list.file,
      rows: rows.length,
      observing: countObserving(rows),
      inForceSinceMs: lastSuccessMs,
      reloads: { succeeded, failed },
    },
    problems,
    total: sumRows(decisions.rows()),
    /** Outcomes of the last five minutes. */
    recent: Object.fromEntries(Object.entries(outcomes).map(([name, counts]) => [name, sumOf(counts)])),
    drift: { unlisted: drift.unlisted() },
    parts,
  };
}

/** Moments that may explain what the charts show. */
function marksOf({ startedMs, history, incidents }: StateOptions): object[] {
  const faults = [...incidents.current(), ...incidents.past()];
  return [
    { atMs: startedMs, kind: 'start', text: 'shopward started' },
    ...incidents.restarts.map((atMs) => ({ atMs, kind: 'start', text: 'a worker was replaced' })),
    ...history.edits().map(({ atMs, counts: { added, removed, changed, looser } }) => ({
      ...{ atMs, kind: 'edit' },
      text: `the list was edited: ${added} added, ${removed} removed, ${changed} changed, ${looser} protected less`,
    })),
    ...faults.flatMap(({ sinceMs, untilMs, id, title, status }) => {
      // The page describes the incident in its own words.
      const named = { text: `${title}: ${status}`, incident: { id, title, status } };
      const over = untilMs === null ? [] : [{ atMs: untilMs, kind: 'over', ...named }];
      return [{ atMs: sinceMs, kind: 'fault', ...named }, ...over];
    }),
  ];
}

/** List -> number of its observing rows, counted once, since a list is immutable. */
const observingOf = new WeakMap<RowSequence, number>();

function countObserving(rows: RowSequence): number {
  const known = observingOf.get(rows);
  if (known !== undefined) return known;
  let observing = 0;
  for (const { observe } of rows) observing += Number(observe);
  observingOf.set(rows, observing);
  return observing;
}

/** `POST /api/purge` with `{"url": …}`, `{"prefix": …}` or `{"all": true}`: reaches every replica, or answers 503. */
export function createPurgeEndpoint(purge: UrlResolver['purge']): AdminEndpoint {
  return {
    method: 'POST',
    path: '/api/purge',
    async run({ body }) {
      const request = readPurge(body);
      if (request === undefined) {
        const error = `send exactly one of {"url": text}, {"prefix": text} or {"all": true}; a text has ${maxUrlBytes} bytes at most`;
        return { status: 400, body: { error } };
      }
      const outcome = await purge(request);
      if (outcome === 'purged') return { status: 200, body: { purged: request } };
      return { status: 503, body: { error: 'the store cannot be reached: send the purge again later' } };
    },
  };
}

function readPurge(body: unknown): Purge | undefined {
  const fields = fieldsOf(body);
  if (Object.keys(fields).length !== 1) return undefined;
  const { url, prefix, all } = fields;
  if (typeof url === 'string' && url !== '' && isShortEnough(url)) return { url };
  if (typeof prefix === 'string' && prefix !== '' && isShortEnough(prefix)) return { prefix };
  return all === true ? 'all' : undefined;
}

/** A request or a token to be explained. */
export interface ExplainQuestion {
  /** In upper case; a method in the text overrides it. Undefined: none was given. */
  readonly method: string | undefined;
  /** As pasted: a path, a URL, a command, a log record or a token. */
  readonly text: string;
  /** Lines `Name: value`. */
  readonly fields: readonly string[];
  readonly body: string | undefined;
}

const longestText = 32_768;
const mostFields = 100;

/**
 * `POST /api/explain` with `{"url"}`, and perhaps `"method"`, `"fields"` (lines) and `"body"`: explains that request under the
 * list in force, or what is wrong with that token. Nothing of the question is logged or kept.
 */
export function createExplainEndpoint(
  explain: (question: ExplainQuestion) => Promise<unknown>,
): AdminEndpoint {
  return {
    method: 'POST',
    path: '/api/explain',
    async run({ body: asked }) {
      const { method, url: text, fields = [], body } = fieldsOf(asked);
      if ([text, body].some((one) => typeof one === 'string' && one.length > longestText)) {
        const most = longestText.toLocaleString('en');
        return { status: 400, body: { error: `what was pasted is too long: ${most} characters at most` } };
      }
      const isMethod = method === undefined || (isText(method) && /^[A-Za-z]{1,20}$/.test(method));
      const areFields = Array.isArray(fields) && fields.length <= mostFields && fields.every(isText);
      if (!isMethod || !isText(text) || text === '' || !areFields || !(body === undefined || isText(body))) {
        const error = 'send {"url": text}, optionally with "method": text, "fields": [text] and "body": text';
        return { status: 400, body: { error } };
      }
      return { status: 200, body: await explain({ method: method?.toUpperCase(), text, fields, body }) };
    },
  };
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value.length <= longestText;
}
