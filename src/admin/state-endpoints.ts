import { type ProtectedResource, resourceId } from '../access/protected-list.ts';
import type { HealthDetail } from '../lib/component.ts';
import type { Problem } from '../lib/problem.ts';
import type { Purge } from '../url-resolver/purge-log.ts';
import type { UrlResolver } from '../url-resolver/url-resolver.ts';
import type { Activity, ExchangeCount } from './activity.ts';
import { fieldsOf, type JsonEndpoint } from './admin-endpoint.ts';
import type { Readiness } from './admin-server.ts';
import type { Drift } from './drift.ts';

/** A dependency or feature as operators see it: one tile of the page. */
export interface PartState {
  /** Stable name: `keys`, `store`, `upstream`, `entity-tags`, `url-resolver`, `refresh-tokens`. */
  readonly id: string;
  readonly title: string;
  readonly status: 'ok' | 'limping' | 'down' | 'off';
  /** One line in words. */
  readonly text: string;
  readonly facts: readonly HealthDetail[];
}

export interface StateOptions {
  readonly version: string;
  readonly startedMs: number;
  readonly mode: 'enforce' | 'observe';
  readonly isEditable: boolean;
  readonly now: () => number;
  readonly activity: Activity;
  readonly drift: Drift;
  readonly list: {
    readonly file: string;
    rows(): readonly ProtectedResource[];
    /** Why the last edit is not in force. */
    problems(): readonly Problem[];
    readonly reloads: { readonly succeeded: number; readonly failed: number; readonly lastSuccessMs: number };
  };
  readiness(): Readiness | Promise<Readiness>;
  /** Of other followed files, such as the mapping file. */
  otherProblems(): readonly Problem[] | Promise<readonly Problem[]>;
  parts(): readonly PartState[] | Promise<readonly PartState[]>;
}

/** `GET /api/state` says how the proxy is, `GET /api/rows` what became of each row of the list. */
export function createStateEndpoints(options: StateOptions): readonly JsonEndpoint[] {
  const { activity, drift, list, now } = options;
  return [
    {
      method: 'GET',
      path: '/api/state',
      async run() {
        const nowMs = now();
        const rows = list.rows();
        const { succeeded, failed, lastSuccessMs } = list.reloads;
        const met = activity.countRows(rows);
        return {
          status: 200,
          body: {
            version: options.version,
            pid: process.pid,
            startedMs: options.startedMs,
            nowMs,
            mode: options.mode,
            isEditable: options.isEditable,
            ...(await options.readiness()),
            list: {
              file: list.file,
              rows: rows.length,
              observing: rows.filter(({ observe }) => observe).length,
              inForceSinceMs: lastSuccessMs,
              reloads: { succeeded, failed },
            },
            problems: [...list.problems(), ...(await options.otherProblems())],
            total: describe(activity.total),
            open: describe(activity.open),
            upstream: activity.upstream,
            timeline: activity.timeline.read(nowMs),
            drift: {
              unlisted: drift.unlisted(),
              unmet: met.filter((count) => count === undefined).length,
            },
            parts: await options.parts(),
          },
        };
      },
    },
    {
      method: 'GET',
      path: '/api/rows',
      run() {
        const rows = list.rows();
        const counts = activity.countRows(rows);
        return {
          status: 200,
          body: {
            file: list.file,
            inForceSinceMs: list.reloads.lastSuccessMs,
            rows: rows.map((row, i) => ({ ...describeRow(row), ...describe(counts[i]) })),
          },
        };
      },
    },
  ];
}

function describeRow(row: ProtectedResource) {
  const { method, template, group, scopes, observe, source } = row;
  return { id: resourceId(row), method, template, group, scopes, observe, line: source.line };
}

function describe(count: ExchangeCount | undefined) {
  return {
    requests: count?.requests ?? 0,
    refusals: Object.fromEntries(count?.refusals ?? []),
    observed: Object.fromEntries(count?.observed ?? []),
    lastSeenMs: count?.lastSeenMs || null,
  };
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

/** `POST /api/explain` with `{"method": …, "url": …}`: what would happen to that request under the list in force. */
export function createExplainEndpoint({
  explain,
}: {
  readonly explain: (method: string, url: string) => unknown;
}): JsonEndpoint {
  return {
    method: 'POST',
    path: '/api/explain',
    run({ body }) {
      const { method, url } = fieldsOf(body);
      const isMethod = typeof method === 'string' && /^[A-Za-z]{1,20}$/.test(method);
      if (!isMethod || typeof url !== 'string' || url === '' || url.length > 16_384) {
        return { status: 400, body: { error: '{"method": text, "url": text} is needed' } };
      }
      return { status: 200, body: explain(method.toUpperCase(), url) };
    },
  };
}
