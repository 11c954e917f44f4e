import type { InspectToken } from '../access/token-inspection.ts';
import type { Readiness } from '../admin/admin-server.ts';
import type { Condition, Tile } from '../admin/incidents.ts';
import type { SystemState } from '../admin/system-endpoints.ts';
import { type Component, type Health, healthOf } from '../lib/component.ts';
import type { Eventually } from '../lib/eventually.ts';
import type { RedisStore } from '../redis/store.ts';
import type { Counting } from '../rollout/counts.ts';
import type { Rollout } from '../rollout/rollout.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { UrlResolver } from '../url-resolver/filter.ts';
import type { createFilters } from './filter-definition.ts';
import { urlResolverDefinition } from './url-resolver.ts';

/** What the admin port reports: about the one process that serves, or about all workers together. */
export interface ProcessStatus {
  /** The health of every component that has one, from memory: no server is asked. */
  health(): Eventually<readonly ComponentHealth[]>;
  /** In the text format of Prometheus. */
  metrics(): Promise<string>;
  /** Undefined: the URL resolver is off. */
  readonly purge: UrlResolver['purge'] | undefined;
  /** Verifies a token with the keys and settings in force, check by check. */
  readonly inspectToken: InspectToken;
  /** Processes, keys, and who shares the store. */
  system(): Promise<SystemState>;
  /** Counts of refusals, enforced and observed; undefined: `rollout` is false. */
  readonly rollout: (() => Promise<Counting>) | undefined;
}

export interface ComponentHealth extends Health, Required<Pick<Component, 'name' | 'title'>> {}

export function healthOfAll(components: readonly Component[]): ComponentHealth[] {
  return components.flatMap((component) => {
    const { name, title = name } = component;
    const health = component.health?.();
    return health === undefined ? [] : [{ ...health, name, title }];
  });
}

interface ProcessStatusSources {
  readonly components: readonly Component[];
  readonly metrics: Pick<Metrics, 'expose'>;
  /** The keys that access tokens are verified with. */
  readonly tokens: { describe(): SystemState['keys'] };
  readonly store: Pick<RedisStore, 'sharing'> | undefined;
  readonly filters: Pick<ReturnType<typeof createFilters>, 'get'>;
  readonly rollout: Rollout | undefined;
  readonly inspectToken: InspectToken;
}

/** The status of this process. */
export function createProcessStatus(sources: ProcessStatusSources): ProcessStatus {
  const { components, tokens, store, filters, rollout } = sources;
  const startedMs = Date.now();
  const resolver = filters.get(urlResolverDefinition)?.resolver;
  return {
    health: () => healthOfAll(components),
    metrics: sources.metrics.expose,
    inspectToken: sources.inspectToken,
    purge: resolver && ((which) => resolver.purge(which)),
    system: async () => ({
      processes: [{ pid: process.pid, startedMs, memoryBytes: process.memoryUsage.rss() }],
      workers: 1,
      keys: tokens.describe(),
      sharing: (await store?.sharing()) ?? null,
    }),
    rollout: rollout && (() => rollout.state()),
  };
}

/** Makes `/readyz` 503 while the process drains, so that load balancers stop sending requests. */
export class Drain implements Component {
  readonly name = 'drain';
  readonly title = false;
  hasBegun = false;

  begin(): void {
    this.hasBegun = true;
  }

  health(): Health {
    return healthOf(this.hasBegun ? ['draining'] : [], { isUnready: this.hasBegun });
  }
}

/** The health of all components in the form of `/readyz`. */
export function readinessOf(healths: readonly ComponentHealth[]): Readiness {
  return {
    ready: !healths.some(({ isUnready }) => isUnready === true),
    reasons: healths.flatMap(({ reasons }) => reasons),
  };
}

/** The health of all components in the form of the console. */
export function conditionOf(healths: readonly ComponentHealth[]): Condition {
  const isShown = ({ title, status }: ComponentHealth) =>
    title !== false && (status === 'degraded' || status === 'down');
  return {
    ...readinessOf(healths),
    others: healths.flatMap((health) => (isShown(health) ? [] : reasonsBeside(health))),
    parts: healths.flatMap((health) => toTile(health) ?? []),
    problems: healths.flatMap(({ problems = [] }) => problems),
  };
}

/** Reasons that do not repeat one of the problems. */
function reasonsBeside({ reasons, problems = [] }: ComponentHealth): string[] {
  return reasons.filter((reason) => !problems.some(({ text }) => reason.includes(text)));
}

function toTile({ name, title, status, reasons, text, details = [] }: ComponentHealth): Tile | undefined {
  if (title === false) return undefined;
  return {
    id: name,
    title,
    status,
    text: text ?? reasons[0] ?? 'it is well',
    facts: details.map(({ combine, ...fact }) => fact),
  };
}
