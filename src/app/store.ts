import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { ProtectedResource } from '../access/protected-list.ts';
import type { ListInForce } from '../access/watched-list.ts';
import type { Config } from '../config/schema.ts';
import type { TrackedResourceOptions } from '../entity-tags/resources.ts';
import type { Component } from '../lib/component.ts';
import type { RedisCredentials } from '../redis/clients.ts';
import { type RecordForms, recordForms } from '../redis/membership.ts';
import type { RedisStore } from '../redis/store.ts';
import { MemoryCounts } from '../rollout/memory-counts.ts';
import { Rollout } from '../rollout/rollout.ts';
import { createSharedCounts } from '../rollout/shared-counts.ts';
import type { DecisionCounts } from '../telemetry/decision-counts.ts';
import type { Log } from '../telemetry/log.ts';
import type { ClockCheck } from './clock.ts';

/** Connection settings of `store`, for the verbs. Undefined: the store is the proxy's memory. */
export function storeConnection({ store }: Pick<Config, 'store'>) {
  const { url, timeout: timeoutMs, replicas, tls = {}, sentinelPassword } = store;
  if (url.kind === 'memory') return undefined;
  const { username, password } = url;
  const pems = Object.entries(tls).map(([name, file = '']) => [name, readFileSync(file, 'utf8')]);
  const credentials = { username, password, sentinelPassword, tls: Object.fromEntries(pems) };
  return { url, timeoutMs, replicas, credentials };
}

/** The store of `store.url`: one Redis for all features, or undefined for this process's memory. */
export async function openStore(
  config: Config,
  credentials: RedisCredentials,
  log: Log,
  clock: ClockCheck,
  version: string,
  forms: RecordForms = recordForms,
): Promise<RedisStore | undefined> {
  const { url, timeout, prefix, replicas } = config.store;
  if (url.kind === 'memory') return undefined;
  // Loaded only if it is used, to keep the start short.
  const { openRedisStore } = await import('../redis/store.ts');
  const member = { version, forms, ...describeMember(config) };
  const onTime = (shownMs: number, askedMs: number) => clock.hear('redis', shownMs, askedMs);
  return openRedisStore({ url, timeoutMs: timeout, prefix, replicas, credentials, member, onTime }, log);
}

export const memoryStore: Component = {
  name: 'store',
  title: 'Store',
  health: () => ({
    status: 'ok',
    reasons: [],
    text: 'in the memory of this process, lost when it ends',
    details: [{ label: 'kind', value: 'memory' }],
  }),
};

/** The settings that all replicas of one store must share. Exported for its tests. */
export function describeMember({ publicUrl, upstream, entityTags, refreshTokens }: Config) {
  const resources = entityTags === false ? [] : entityTags.resources;
  return {
    owner: publicUrl ?? upstream.url,
    leaseMs: entityTags === false ? 0 : entityTags.lease,
    tracked: resources.map(trackedLine),
    digestKey: refreshTokens === false ? '' : fingerprintOf(refreshTokens.digestKey ?? ''),
  };
}

/** Distinguishes two keys. A random key cannot be found from it. */
function fingerprintOf(digestKey: string): string {
  return hash('sha256', `shopward key ${digestKey}`, 'hex').slice(0, 16);
}

type Tracked = Pick<TrackedResourceOptions, 'member' | 'methods' | 'batch'>;

const trackedLines = new WeakMap<Tracked, string>();

/** The part of a tracked resource that all replicas must share. Cached, since each tracked request asks for it. */
export function trackedLine(resource: Tracked): string {
  const known = trackedLines.get(resource);
  if (known !== undefined) return known;
  const { member, methods, batch } = resource;
  const line = `${methods.toSorted().join(',')} ${member}${batch === 'guarded' ? ' (batch: guarded)' : ''}`;
  trackedLines.set(resource, line);
  return line;
}

/** How often a process writes its counts to the store. A crash loses at most the counts of one interval. */
const rolloutIntervalMs = 5_000;

/** Adds up refusals in the store, or in memory without a store; undefined: `rollout` is false. */
export function createRollout(
  config: Config,
  inForce: () => Config,
  counts: DecisionCounts,
  list: ListInForce,
  store: RedisStore | undefined,
  log: Log,
): Rollout | undefined {
  if (config.rollout === false) return undefined;
  let [mode, known] = [inForce().mode, list.inForce];
  const readRows = (): Iterable<ProtectedResource> => {
    const { rows: all, terms } = known;
    // Without observed rows the list is not indexed: an index takes as much memory as the list.
    const isRead = mode === 'observe' || terms.some(({ observe }) => observe);
    return { [Symbol.iterator]: () => (isRead ? all : [])[Symbol.iterator]() };
  };
  let rows = readRows();
  const rollout = new Rollout({
    ...{ counts, intervalMs: rolloutIntervalMs },
    ...{ isObserving: () => inForce().mode === 'observe', rules: () => decidingSettings(inForce()) },
    rows() {
      if (mode !== inForce().mode || known !== list.inForce) {
        [mode, known] = [inForce().mode, list.inForce];
        rows = readRows();
      }
      return rows;
    },
    store: store
      ? createSharedCounts(store.redis, config.store.prefix, config.rollout.keep)
      : new MemoryCounts(),
    onFault: (fault) => log.error({ event: 'fault', err: fault }, 'refusals could not be counted'),
  });
  list.onApplied(() => rollout.follow());
  return rollout;
}

/** The settings that decide on refusals besides the row. `auth.keys`, which may be renewed, and the digest key are left out. */
function decidingSettings({ mode, auth, entityTags, refreshTokens, request }: Config): string {
  const { keys, ...token } = auth;
  const tokens = refreshTokens === false ? false : { ...refreshTokens, digestKey: undefined };
  return JSON.stringify({ mode, token, entityTags, tokens, request });
}
