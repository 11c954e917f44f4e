import type { KeyDescription } from '../access/signing-keys.ts';
import type { Eventually } from '../lib/eventually.ts';
import { readReasons } from '../rollout/reasons.ts';
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

/**
 * `GET /api/system`: processes and keys.
 * `GET /api/reasons`: cause and remedy of each reason.
 */
export function createSystemEndpoints(system: () => Promise<SystemState>): readonly AdminEndpoint[] {
  const get = (path: string, body: () => Eventually<unknown>): AdminEndpoint => ({
    method: 'GET',
    path,
    run: async () => ({ status: 200, body: await body() }),
  });
  return [get('/api/system', system), get('/api/reasons', () => ({ reasons: readReasons() }))];
}
