import type { ProtectedResource } from '../access/protected-list.ts';
import type { UrlResolver } from '../url-resolver/filter.ts';
import type { Purge } from '../url-resolver/purge-log.ts';
import type { Activity } from './activity.ts';
import { fieldsOf, type JsonEndpoint } from './admin-endpoint.ts';
import type { Drift } from './drift.ts';
import { describeCount } from './exchange-count.ts';
import type { Condition, Incidents } from './incidents.ts';
import { isRange, ranges, type Series } from './series.ts';

interface StateOptions {
  readonly version: string;
  readonly startedMs: number;
  readonly mode: 'enforce' | 'observe';
  readonly isEditable: boolean;
  readonly now: () => number;
  readonly activity: Activity;
  readonly series: Series;
  readonly incidents: Pick<Incidents, 'current' | 'past'>;
  /** Takes what is so now, so that an answer knows what its other parts say. */
  look(): Promise<Condition>;
  readonly drift: Drift;
  readonly list: {
    readonly file: string;
    rows(): readonly ProtectedResource[];
    readonly reloads: { readonly succeeded: number; readonly failed: number; readonly lastSuccessMs: number };
  };
}

/** `GET /api/state` says how the proxy is, `GET /api/series?range=1h` what the charts show. */
export function createStateEndpoints(options: StateOptions): readonly JsonEndpoint[] {
  const { series, now } = options;
  return [
    {
      method: 'GET',
      path: '/api/series',
      run({ query }) {
        const range = new URLSearchParams(query).get('range') ?? '5m';
        if (!isRange(range)) {
          return { status: 400, body: { error: `range is one of ${Object.keys(ranges).join(', ')}` } };
        }
        return { status: 200, body: series.read(range, now()) };
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
  const { activity, series, drift, list, now } = options;
  const { ready, reasons, parts, problems } = await options.look();
  const nowMs = now();
  const rows = list.rows();
  const { succeeded, failed, lastSuccessMs } = list.reloads;
  const { stepMs, endMs, outcomes } = series.readOutcomes('5m', nowMs);
  return {
    version: options.version,
    pid: process.pid,
    startedMs: options.startedMs,
    nowMs,
    mode: options.mode,
    isEditable: options.isEditable,
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
    total: describeCount(activity.total),
    open: describeCount(activity.open),
    upstream: activity.upstream,
    timeline: { stepMs, endMs, ...outcomes },
    drift: { unlisted: drift.unlisted() },
    parts,
  };
}

/** Of a list how many rows only observe: counted once, for a list never changes. */
const observingOf = new WeakMap<readonly ProtectedResource[], number>();

function countObserving(rows: readonly ProtectedResource[]): number {
  const known = observingOf.get(rows);
  if (known !== undefined) return known;
  const observing = rows.reduce((sum, { observe }) => sum + Number(observe), 0);
  observingOf.set(rows, observing);
  return observing;
}

/** `POST /api/purge` with `{"url": …}`, `{"prefix": …}` or `{"all": true}`: reaches every replica, or answers 503. */
export function createPurgeEndpoint({
  purge,
  path = '/api/purge',
}: {
  readonly purge: UrlResolver['purge'];
  readonly path?: string;
}): JsonEndpoint {
  return {
    method: 'POST',
    path,
    async run({ body }) {
      const request = readPurge(body);
      if (request === undefined) {
        return {
          status: 400,
          body: { error: 'one of {"url": text}, {"prefix": text} and {"all": true} is needed' },
        };
      }
      const outcome = await purge(request);
      if (outcome === 'purged') return { status: 200, body: { purged: request } };
      return { status: 503, body: { error: 'the purge log cannot be reached; nothing was purged' } };
    },
  };
}

function readPurge(body: unknown): Purge | undefined {
  const fields = fieldsOf(body);
  if (Object.keys(fields).length !== 1) return undefined;
  const { url, prefix, all } = fields;
  if (typeof url === 'string' && url !== '') return { url };
  if (typeof prefix === 'string' && prefix !== '') return { prefix };
  return all === true ? 'all' : undefined;
}

/** What somebody wants explained. */
export interface ExplainQuestion {
  /** In upper case; where the text names one itself, that counts. */
  readonly method: string;
  /** Whatever was pasted: a path, a command, a record, a token. */
  readonly text: string;
  /** Lines `Name: value`. */
  readonly fields: readonly string[];
  readonly body: string | undefined;
}

const longestText = 32_768;
const mostFields = 100;

/**
 * `POST /api/explain` with `{"method", "url"}`, and perhaps `"fields"` (lines) and `"body"`: what would happen to that request
 * under the list in force, or what is wrong with that token. Nothing of it is logged or kept.
 */
export function createExplainEndpoint({
  explain,
}: {
  readonly explain: (question: ExplainQuestion) => Promise<unknown>;
}): JsonEndpoint {
  return {
    method: 'POST',
    path: '/api/explain',
    async run({ body: asked }) {
      const { method, url: text, fields = [], body } = fieldsOf(asked);
      const isMethod = typeof method === 'string' && /^[A-Za-z]{1,20}$/.test(method);
      const areFields = Array.isArray(fields) && fields.length <= mostFields && fields.every(isText);
      if (!isMethod || !isText(text) || text === '' || !areFields || !(body === undefined || isText(body))) {
        return {
          status: 400,
          body: {
            error: '{"method": text, "url": text} is needed, "fields": [text] and "body": text may be',
          },
        };
      }
      return { status: 200, body: await explain({ method: method.toUpperCase(), text, fields, body }) };
    },
  };
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value.length <= longestText;
}
