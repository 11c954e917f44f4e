import type { ProtectedList } from '../access/protected-list.ts';
import type { ListInForce } from '../access/watched-list.ts';
import type { Config, PartialConfig } from '../config/schema.ts';
import type { Component } from '../lib/component.ts';
import type { Filter, Matcher } from '../proxy/filter.ts';
import { compileRouteLimits, type PlanRules } from '../proxy/plan.ts';
import type { RedisStore } from '../redis/store.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { UpstreamClient } from '../upstream/port.ts';

/** The parts that filters are created from. */
export interface FilterDependencies {
  readonly config: Config;
  readonly list: ListInForce;
  /** Undefined: the store is the memory of this process. */
  readonly redis: RedisStore | undefined;
  /** Creates a client for the filter's own requests to the shop, with connections of its own. */
  createQuestionClient(): UpstreamClient;
  readonly log: Log;
  readonly metrics: Metrics;
}

/**
 * How a filter is made from the configuration, in two steps: its pure matcher, which is enough for `plan`, `explain` and
 * `check`, and then the running filter.
 */
export interface FilterDefinition<M extends Matcher = Matcher, F extends Filter = Filter> {
  readonly name: string;
  /** Title of the filter's tile on the console, also while the filter is off; undefined: then it has none. */
  readonly title?: string;
  /** `endpoint`: answers the request itself, without a token; `forward`: acts on requests that go to the upstream. */
  readonly stage: 'endpoint' | 'forward';
  /** Undefined: the filter is switched off. A configuration with problems may lack sections. */
  compile(config: PartialConfig): M | undefined;
  create(matcher: M, dependencies: FilterDependencies): F & HotFilter;
}

/** A filter whose settings may change while it runs. */
interface HotFilter {
  /** The settings in force switch the filter off: no request meets it. */
  readonly isOff?: boolean;
  useSettings?(config: Config): void;
}

/** The matchers of the filters that are switched on. */
export function compileFilters(config: PartialConfig, definitions: readonly FilterDefinition[]) {
  return definitions.flatMap((definition) => {
    const matcher = definition.compile(config);
    return matcher === undefined ? [] : [{ definition, matcher }];
  });
}

/** The rules for `plan`, made from a configuration and a list, without a running proxy. */
export function compileRules(
  config: Config,
  inForce: Pick<ProtectedList, 'match' | 'tokenParameters'>,
  definitions: readonly FilterDefinition[],
): PlanRules<Matcher> {
  const compiled = compileFilters(config, definitions);
  const ofStage = (stage: FilterDefinition['stage']) =>
    compiled.filter(({ definition }) => definition.stage === stage).map(({ matcher }) => matcher);
  return {
    endpoints: ofStage('endpoint'),
    list: { inForce },
    filters: ofStage('forward'),
    observe: config.mode === 'observe',
    limitsOf: createRouteLimits(config),
  };
}

/** The limits of each route; undefined: all routes have the same limits. */
export function createRouteLimits({ limits, upstream, request }: Config): PlanRules['limitsOf'] {
  const usual = { requestBodyBytes: limits.requestBody, responseTimeoutMs: upstream.responseTimeout };
  return compileRouteLimits(limits.routes, usual, request);
}

/** Bytes of the longest body that any route accepts: a longer Content-Length is refused before the route is known. */
export function largestBody({ requestBody, routes }: Config['limits']): number {
  return routes.reduce((largest, route) => Math.max(largest, route.requestBody ?? 0), requestBody);
}

/** The filters of a running proxy, with the matchers of `compileRules`. */
export function createFilters(dependencies: FilterDependencies, definitions: readonly FilterDefinition[]) {
  const created = compileFilters(dependencies.config, definitions).map(({ definition, matcher }) => ({
    definition,
    filter: titled(definition, definition.create(matcher, dependencies)),
  }));
  const ofStage = (stage: FilterDefinition['stage']) =>
    created.filter(({ definition }) => definition.stage === stage).map(({ filter }) => filter);
  const [endpoints, filters] = [ofStage('endpoint'), ofStage('forward')];
  const off = definitions.flatMap((definition) =>
    created.some((one) => one.definition === definition) ? [] : switchedOff(definition),
  );
  return {
    endpoints,
    /** The filters that requests meet with the settings in force. */
    filters: (): readonly Filter[] => filters.filter(({ isOff }) => isOff !== true),
    /** All filters in the order of their start, then the switched-off ones that have a tile. */
    components: [...endpoints, ...filters, ...off],
    /** Applies sections that take effect without a restart. */
    useSettings(config: Config) {
      for (const { filter } of created) filter.useSettings?.(config);
    },
    /** The filter of a definition; undefined: it is switched off. */
    get: <F extends Filter>(wanted: FilterDefinition<Matcher, F>) =>
      created.find(({ definition }) => definition === (wanted as unknown))?.filter as F | undefined,
  };
}

function titled({ title }: FilterDefinition, filter: Filter & HotFilter): Filter & HotFilter {
  return title === undefined ? filter : Object.assign(filter, { title });
}

function switchedOff({ name, title }: FilterDefinition): Component[] {
  if (title === undefined) return [];
  return [{ name, title, health: () => ({ status: 'off', reasons: [], text: 'switched off' }) }];
}
