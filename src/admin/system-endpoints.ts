import { readFileSync } from 'node:fs';
import type { KeyDescription } from '../access/signing-keys.ts';
import type { Eventually } from '../lib/eventually.ts';
import type { TokenCensus } from '../refresh-tokens/census.ts';
import type { JsonEndpoint } from './admin-endpoint.ts';

/** A process that serves. */
interface ProcessDescription {
  readonly pid: number;
  readonly startedMs: number;
  readonly memoryBytes: number;
}

/** What is inside the process that serves, or in all of them together. */
export interface SystemState {
  readonly processes: readonly ProcessDescription[];
  /** Processes that are meant to serve. */
  readonly workers: number;
  readonly keys: readonly KeyDescription[];
  /** Processes that share the store, of every replica; null: there is none, or it was not reached. */
  readonly sharing: number | null;
}

/** A setting as it is in force. */
interface EffectiveSetting {
  /** `limits.requestBody` */
  readonly name: string;
  /** As it would be written; of a secret only that there is one. */
  readonly value: string;
  readonly isDefault: boolean;
  readonly isSecret: boolean;
  readonly description: string;
}

interface SystemOptions {
  system(): Promise<SystemState>;
  /** Undefined: refresh tokens are not watched. */
  readonly census: (() => Promise<TokenCensus | undefined>) | undefined;
  /** Where keys come from, and the rest of the configuration, without secrets. */
  readonly settings: () => readonly EffectiveSetting[];
}

/**
 * `GET /api/system`: processes and keys. `GET /api/config`: the configuration in force, secrets cut out.
 * `GET /api/refresh-tokens`: how many there are in which state, without any of them. `GET /api/reasons`: cause and cure.
 */
export function createSystemEndpoints({ system, census, settings }: SystemOptions): readonly JsonEndpoint[] {
  const get = (path: string, body: () => Eventually<unknown>): JsonEndpoint => ({
    method: 'GET',
    path,
    run: async () => ({ status: 200, body: await body() }),
  });
  return [
    get('/api/system', system),
    get('/api/config', () => ({ settings: settings() })),
    get('/api/reasons', () => ({ reasons: readReasons() })),
    {
      method: 'GET',
      path: '/api/refresh-tokens',
      async run() {
        if (census === undefined) return { status: 404, body: { error: 'refreshTokens is false' } };
        const counted = await census();
        if (counted !== undefined) return { status: 200, body: counted };
        return { status: 503, body: { error: 'the store cannot be reached' } };
      },
    },
  ];
}

/** What a reason means, and what to do. Exported for its tests. */
export interface ReasonText {
  readonly name: string;
  readonly status: string;
  readonly cause: string;
  readonly cure: string;
}

let reasons: readonly ReasonText[] | undefined;

/** docs/reasons.md is the one place where they stand; it is part of the package. None where it was left out. */
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

/** Rows of the tables, without their marks. Exported for its tests. */
export function parseReasons(document: string): ReasonText[] {
  const rows = document.matchAll(/^\| <a id="([a-z-]+)"><\/a>[^|]*\| ([^|]*) \| ([^|]*) \| ([^|]*) \|$/gm);
  return [...rows].map(([, name = '', status = '', cause = '', cure = '']) => ({
    name,
    status: withoutMarks(status),
    cause: withoutMarks(cause),
    cure: withoutMarks(cure),
  }));
}

function withoutMarks(text: string): string {
  return text
    .replace(/\[([^\][]*)\]\([^()]*\)/g, '$1')
    .replaceAll(/[`*]/g, '')
    .trim();
}
