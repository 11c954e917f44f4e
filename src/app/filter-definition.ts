import { createAccessTokenMatcher } from '../access/filter.ts';
import type { ProtectedList } from '../access/protected-list.ts';
import type { WatchedList } from '../access/watched-list.ts';
import type { Config, PartialConfig } from '../config/schema.ts';
import type { Component } from '../lib/component.ts';
import type { Filter, Matcher } from '../proxy/filter.ts';
import type { PlanRules } from '../proxy/plan.ts';
import { compileRouteLimits } from '../proxy/route-limits.ts';
import type { RedisStore } from '../redis/store.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { UpstreamEngine } from '../upstream/engine.ts';

/** What filters are built of. */
export interface FilterDependencies {
  readonly config: Config;
  readonly list: WatchedList;
  /** Undefined: the store is this process's memory. */
  readonly redis: RedisStore | undefined;
  /** `host[:port]` of the upstream. */
  readonly upstreamHost: string;
  /** For questions of a filter's own to the shop, with connections of its own. */
  createQuestionEngine(): UpstreamEngine;
  readonly log: Log;
  readonly metrics: Metrics;
}

/**
 * A filter as the configuration makes it: first its pure half, for whoever asks what would happen (`plan`, `explain`,
 * `check`), then the whole of it around that half.
 */
export interface FilterDefinition<M extends Matcher = Matcher, F extends Filter = Filter> {
  readonly name: string;
  /** Of its tile on the console, which then says, too, that it is switched off. */
  readonly title?: string;
  /** `endpoint`: answers by itself, and needs no token; `forward`: has a say in what goes to the upstream. */
  readonly stage: 'endpoint' | 'forward';
  /** Undefined: it is switched off. Goes by what there is of a configuration that has problems. */
  compile(config: PartialConfig): M | undefined;
  create(matcher: M, dependencies: FilterDependencies): F;
}

interface CompiledFilter {
  readonly definition: FilterDefinition;
  readonly matcher: Matcher;
}

/** The pure halves of the filters that are switched on. */
export function compileFilters(
  config: PartialConfig,
  definitions: readonly FilterDefinition[],
): readonly CompiledFilter[] {
  return definitions.flatMap((definition) => {
    const matcher = definition.compile(config);
    return matcher === undefined ? [] : [{ definition, matcher }];
  });
}

/** What `plan` goes by where nothing is run: the proxy's own decisions, of a configuration and a list. */
export function compileRules(
  config: Config,
  list: Pick<ProtectedList, 'match'>,
  definitions: readonly FilterDefinition[],
): PlanRules<Matcher> {
  const compiled = compileFilters(config, definitions);
  return {
    endpoints: compiled.flatMap(({ definition, matcher }) =>
      definition.stage === 'endpoint' ? matcher : [],
    ),
    accessToken: createAccessTokenMatcher(() => list),
    filters: compiled.flatMap(({ definition, matcher }) => (definition.stage === 'forward' ? matcher : [])),
    observe: config.mode === 'observe',
    limitsOf: createRouteLimits(config),
  };
}

/** Undefined: every request has the same. */
export function createRouteLimits({ limits, upstream, request }: Config): PlanRules['limitsOf'] {
  const usual = { requestBodyBytes: limits.requestBody, responseTimeoutMs: upstream.responseTimeout };
  return compileRouteLimits(limits.routes, usual, request);
}

/** Bytes of the longest body that any route takes: an announced one that is longer is refused before it is planned. */
export function largestBody({ requestBody, routes }: Config['limits']): number {
  return routes.reduce((largest, route) => Math.max(largest, route.requestBody ?? 0), requestBody);
}

/** The filters of a running proxy, each around the pure half that `compileRules` would have made. */
export interface CreatedFilters {
  readonly endpoints: readonly Filter[];
  readonly filters: readonly Filter[];
  /** The same in the order of their start, and those that are switched off and have a tile. */
  readonly components: readonly Component[];
  /** The one of a definition; undefined: it is switched off. */
  get<F extends Filter>(definition: FilterDefinition<Matcher, F>): F | undefined;
}

export function createFilters(
  dependencies: FilterDependencies,
  definitions: readonly FilterDefinition[],
): CreatedFilters {
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
    filters,
    components: [...endpoints, ...filters, ...off],
    get: <F extends Filter>(wanted: FilterDefinition<Matcher, F>) =>
      created.find(({ definition }) => definition === (wanted as unknown))?.filter as F | undefined,
  };
}

function titled({ title }: FilterDefinition, filter: Filter): Filter {
  return title === undefined ? filter : Object.assign(filter, { title });
}

function switchedOff({ name, title }: FilterDefinition): Component[] {
  if (title === undefined) return [];
  return [{ name, title, health: () => ({ status: 'off', reasons: [], text: 'switched off' }) }];
}
