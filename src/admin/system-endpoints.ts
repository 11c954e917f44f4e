import { readFileSync } from 'node:fs';
import type { KeyDescription } from '../access/signing-keys.ts';
import type { Eventually } from '../lib/eventually.ts';
import type { AdminEndpoint } from './admin-endpoint.ts';

/** A process that serves. */
interface ProcessDescription {
  readonly pid: number;
  readonly startedMs: number;
  readonly memoryBytes: number;
}

/** The processes that serve, and the keys with which they verify tokens. */
export interface SystemState {
  readonly processes: readonly ProcessDescription[];
  /** The configured number of processes. */
  readonly workers: number;
  readonly keys: readonly KeyDescription[];
  /** Processes of all replicas that share the store; null: the store is not shared, or cannot be reached. */
  readonly sharing: number | null;
}

interface SystemOptions {
  system(): Promise<SystemState>;
}

/**
 * `GET /api/system`: processes and keys.
 * `GET /api/reasons`: cause and remedy of each reason.
 */
export function createSystemEndpoints({ system }: SystemOptions): readonly AdminEndpoint[] {
  const get = (path: string, body: () => Eventually<unknown>): AdminEndpoint => ({
    method: 'GET',
    path,
    run: async () => ({ status: 200, body: await body() }),
  });
  return [get('/api/system', system), get('/api/reasons', () => ({ reasons: readReasons() }))];
}

/** What a reason means, and what to do. */
interface ReasonText {
  readonly name: string;
  readonly status: string;
  readonly cause: string;
  readonly cure: string;
}

let reasons: readonly ReasonText[] | undefined;

/** Read from docs/reasons.md, their only source, which the package contains. Empty if the file is missing. */
function readReasons(): readonly ReasonText[] {
  reasons ??= parseReasons(readDocument());
  return reasons;
}

function readDocument(): string {
  try {
    return readFileSync(new URL('../../docs/reasons.md', import.meta.url), 'utf8');
  } catch {
    return '';
  }
}

/** The rows of the tables, without Markdown except code spans. Exported for its tests. */
export function parseReasons(document: string): ReasonText[] {
  // The table of reasons for a bad token has no status column, and one column for cause and remedy.
  const rows = document.matchAll(/^\| ?<a id="([a-z-]+)"><\/a>[^|]*(?:\|([^|]*))?\|([^|]*)\|([^|]*)\|$/gm);
  return [...rows].map(([, name = '', status, cause = '', cure = '']) => ({
    name,
    status: withoutMarks(status ?? '401').replaceAll('`', ''),
    cause: withoutMarks(status === undefined ? cure : cause),
    cure: status === undefined ? '' : withoutMarks(cure),
  }));
}

function withoutMarks(text: string): string {
  return text
    .replace(/\[([^\][]*)\]\([^()]*\)/g, '$1')
    .replaceAll('**', '')
    .trim();
}
