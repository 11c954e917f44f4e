import { createAccessTokenMatcher } from '../access/filter.ts';
import type { ProtectedList } from '../access/protected-list.ts';
import type { Config, PartialConfig } from '../config/schema.ts';
import type { Filter, Matcher } from '../proxy/filter.ts';
import type { PlanRules } from '../proxy/plan.ts';
import { corsDefinition, metadataDefinition, protectedResourcesDefinition } from './endpoints.ts';
import { entityTagsDefinition } from './entity-tags.ts';
import type { FilterDefinition, FilterDependencies } from './filter-definition.ts';
import { refreshTokensDefinition } from './refresh-tokens.ts';
import { urlResolverDefinition } from './url-resolver.ts';

/** Every filter of the proxy, in the order in which they are asked: adding one is its folder and a line in here. */
export const filterDefinitions: readonly FilterDefinition[] = [
  corsDefinition,
  urlResolverDefinition,
  protectedResourcesDefinition,
  metadataDefinition,
  refreshTokensDefinition,
  entityTagsDefinition,
];

export interface CompiledFilter {
  readonly definition: FilterDefinition;
  readonly matcher: Matcher;
}

/** The pure halves of the filters that are switched on. */
export function compileFilters(
  config: PartialConfig,
  definitions: readonly FilterDefinition[] = filterDefinitions,
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
  definitions?: readonly FilterDefinition[],
): PlanRules<Matcher> {
  const compiled = compileFilters(config, definitions);
  return {
    endpoints: compiled.flatMap(({ definition, matcher }) =>
      definition.stage === 'endpoint' ? matcher : [],
    ),
    accessToken: createAccessTokenMatcher(() => list),
    filters: compiled.flatMap(({ definition, matcher }) => (definition.stage === 'forward' ? matcher : [])),
    observe: config.mode === 'observe',
  };
}

/** The filters of a running proxy, each around the pure half that `compileRules` would have made. */
export interface CreatedFilters {
  readonly endpoints: readonly Filter[];
  readonly filters: readonly Filter[];
  /** The one of a definition; undefined: it is switched off. */
  get<F extends Filter>(definition: FilterDefinition<Matcher, F>): F | undefined;
}

export function createFilters(
  dependencies: FilterDependencies,
  definitions: readonly FilterDefinition[],
): CreatedFilters {
  const created = compileFilters(dependencies.config, definitions).map(({ definition, matcher }) => ({
    definition,
    filter: definition.create(matcher, dependencies),
  }));
  const ofStage = (stage: FilterDefinition['stage']) =>
    created.filter(({ definition }) => definition.stage === stage).map(({ filter }) => filter);
  return {
    endpoints: ofStage('endpoint'),
    filters: ofStage('forward'),
    get: <F extends Filter>(wanted: FilterDefinition<Matcher, F>) =>
      created.find(({ definition }) => definition === (wanted as unknown))?.filter as F | undefined,
  };
}
