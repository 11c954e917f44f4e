import type { Config, PartialConfig } from '../config/schema.ts';
import type { Filter, Matcher } from '../proxy/filter.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { UpstreamEngine } from '../upstream/engine.ts';
import type { RedisPart } from './redis.ts';
import type { WatchedList } from './watched-list.ts';

/** What filters are built of. */
export interface FilterDependencies {
  readonly config: Config;
  readonly list: WatchedList;
  /** Undefined: the store is this process's memory. */
  readonly redis: RedisPart | undefined;
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
  /** `endpoint`: answers by itself, and needs no token; `forward`: has a say in what goes to the upstream. */
  readonly stage: 'endpoint' | 'forward';
  /** Undefined: it is switched off. Goes by what there is of a configuration that has problems. */
  compile(config: PartialConfig): M | undefined;
  create(matcher: M, dependencies: FilterDependencies): F;
}
