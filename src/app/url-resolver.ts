import type { Config } from '../config/schema.ts';
import type { PathRules } from '../http/path-table.ts';
import { type Component, counter, gauge, healthOf, type MetricSpec } from '../lib/component.ts';
import { formatProblem } from '../lib/problem.ts';
import type { Filter } from '../proxy/filter.ts';
import type { Redis } from '../redis/redis.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { UpstreamEngine, UpstreamExchange, UpstreamFault } from '../upstream/engine.ts';
import { CollectedBody } from '../upstream/request-body.ts';
import { createResolverMatcher, type ResolverMatcher } from '../url-resolver/filter.ts';
import type { ResolverEvent } from '../url-resolver/options.ts';
import { createRedisPurgeLog } from '../url-resolver/purge-log.ts';
import { createRedisSharedMapping } from '../url-resolver/shared-cache.ts';
import type { AskUpstream, LookupError } from '../url-resolver/source.ts';
import { UrlResolver } from '../url-resolver/url-resolver.ts';
import type { FilterDefinition } from './filter-definition.ts';
import { questionConnections } from './forwarding.ts';

export interface UrlResolverInput {
  readonly settings: Exclude<Config['urlResolver'], false>;
  /** How paths are read (`request`). */
  readonly paths: PathRules;
  readonly publicUrl: string | undefined;
  readonly forwardHost: boolean;
  readonly responseTimeoutMs: number;
  /** For questions of our own, with connections of its own. */
  readonly engine: UpstreamEngine;
  readonly maxLookups: number;
  readonly upstreamHost: string;
  readonly redis: Redis | undefined;
  /** Begins all keys in the store. */
  readonly storePrefix: string;
  readonly log: Log;
  readonly metrics: Metrics;
}

export interface UrlResolverPart extends Omit<Component, 'name'> {
  readonly resolver: UrlResolver;
}

export function createUrlResolverPart(input: UrlResolverInput): UrlResolverPart {
  const { settings, redis, log, metrics, engine } = input;
  const keyPrefix = `${input.storePrefix}:url`;
  const resolver = new UrlResolver({
    path: settings.path,
    paths: input.paths,
    publicUrl: input.publicUrl,
    locales: settings.locales,
    defaultLocale: settings.defaultLocale,
    stores: settings.stores,
    storeByHost: input.forwardHost,
    upstream: settings.source.upstream
      ? {
          ask: createAskUpstream(engine, input.upstreamHost),
          timeoutMs: Math.min(input.responseTimeoutMs, 10_000),
          maxLookups: input.maxLookups,
        }
      : undefined,
    mappingFile: settings.source.file === undefined ? undefined : { path: settings.source.file },
    lifetimes: {
      ttlMs: settings.ttl,
      notFoundTtlMs: settings.notFoundTtl,
      staleWhileRevalidateMs: settings.staleWhileRevalidate,
      staleIfErrorMs: settings.staleIfError,
    },
    maxEntries: settings.maxEntries,
    shared: redis && {
      mappings: createRedisSharedMapping(redis, keyPrefix),
      purgeLog: createRedisPurgeLog(redis, keyPrefix),
    },
    onEvent: (event) => emit(event, log, metrics),
  });
  return {
    resolver,
    async start() {
      const problems = await resolver.start();
      if (problems.length > 0) {
        throw new Error(problems.map(formatProblem).join('\n'));
      }
    },
    metrics: metricSpecs(resolver),
    health() {
      const { sharedAway, file } = resolver.stats();
      const reasons = sharedAway ? ['url resolver: shared copies are away; each process asks by itself'] : [];
      for (const problem of file?.problems ?? []) {
        reasons.push(`mapping file: ${problem.file}:${problem.line}:${problem.column}: ${problem.text}`);
      }
      return healthOf(reasons);
    },
    async reload() {
      await resolver.reload();
    },
    async close() {
      await resolver.close();
      await engine.close();
    },
  };
}

const counters = [
  ['hits', 'Answers from fresh mappings of this process.', 'hits'],
  ['not_found_hits', 'Answers from remembered "not found".', 'notFoundHits'],
  ['stale_hits', 'Answers from stale mappings.', 'staleHits'],
  ['shared_hits', 'Answers from the copies that replicas share.', 'sharedHits'],
  ['file_answers', 'Answers from the mapping file.', 'fileAnswers'],
  ['misses', 'Requests that waited for the shop.', 'misses'],
  ['questions_asked', 'Questions to the shop.', 'lookups'],
  ['failures', 'Questions that the shop did not answer in a way that counts.', 'failures'],
] as const;

function metricSpecs(resolver: UrlResolver): MetricSpec[] {
  const stats = () => resolver.stats();
  return [
    gauge('shopward_url_entries', 'Mappings kept in this process.', 'sum', () => stats().entries),
    gauge('shopward_url_questions', 'Questions to the shop under way.', 'sum', () => stats().lookupsUnderWay),
    // Every process reads the same file.
    gauge(
      'shopward_url_file_rows',
      'Rows of the mapping file in force.',
      'max',
      () => stats().file?.rows ?? 0,
    ),
    gauge(
      'shopward_url_file_last_reload_success',
      'Whether the last edit of the mapping file is in force.',
      'min',
      () => (stats().file?.isLastReloadGood === false ? 0 : 1),
    ),
    ...counters.map(([name, help, key]) => counter(`shopward_url_${name}`, help, () => stats()[key])),
  ];
}

/** The resolver, and what the admin port asks of it. */
export interface UrlResolverFilter extends Filter<true> {
  readonly resolver: UrlResolver;
}

export const urlResolverDefinition: FilterDefinition<ResolverMatcher, UrlResolverFilter> = {
  name: 'url-resolver',
  stage: 'endpoint',
  compile({ urlResolver, request = { ignoredPrefixes: [] } }) {
    return urlResolver ? createResolverMatcher(urlResolver.path, request) : undefined;
  },
  create(matcher, { config, redis, upstreamHost, createQuestionEngine, log, metrics }) {
    if (config.urlResolver === false) throw new TypeError('urlResolver is off');
    const part = createUrlResolverPart({
      settings: config.urlResolver,
      paths: config.request,
      publicUrl: config.publicUrl,
      forwardHost: config.upstream.forwardHost,
      responseTimeoutMs: config.upstream.responseTimeout,
      engine: createQuestionEngine(),
      maxLookups: questionConnections,
      upstreamHost,
      redis: redis?.redis,
      storePrefix: config.store.prefix,
      log,
      metrics,
    });
    return { ...matcher, ...part, run: (_match, { request }) => part.resolver.answer(request) };
  },
};

function emit(event: ResolverEvent, log: Log, metrics: Metrics): void {
  metrics.countEvent('url-resolver', event.kind);
  switch (event.kind) {
    case 'file-loaded':
      log.info(
        { event: 'mapping-loaded', rows: event.rows, durationMs: event.durationMs },
        'the mapping file is in force',
      );
      break;
    case 'file-refused':
      log.error({ event: 'mapping-refused', problems: event.problems }, 'the mapping file was not loaded');
      break;
    case 'source-failed':
      log.debug(
        { event: 'url-source-failed', fault: event.fault, reason: event.reason },
        'the shop gave no mapping',
      );
      break;
    case 'source-exception':
    case 'shared-away':
      log.warn({ event: event.kind, err: event.cause }, 'url resolver');
      break;
    case 'forgotten':
      log.info({ event: event.kind }, 'mappings were forgotten: Redis was emptied, or is another one');
      break;
    case 'shared-back':
      log.info({ event: event.kind }, 'mappings are shared again');
      break;
  }
}

/** Questions of our own to the upstream, over the engine that forwards; `upstreamHost` where a question names no Host. */
function createAskUpstream(engine: UpstreamEngine, upstreamHost: string): AskUpstream {
  return ({ target, fields, timeoutMs, maxBodyBytes }) =>
    new Promise((resolve) => {
      const collected = new CollectedBody(maxBodyBytes);
      let status = 0;
      let answerFields: readonly string[] = [];
      let end: 'timeout' | 'invalid' | undefined;
      let exchange: UpstreamExchange | undefined;
      const stop = (why: 'timeout' | 'invalid') => {
        end ??= why;
        exchange?.abort();
      };
      const timer = setTimeout(() => stop('timeout'), timeoutMs);
      const hasHost = fields.some((part, i) => i % 2 === 0 && part === 'Host');
      const request = {
        method: 'GET',
        target,
        fields: hasHost ? fields : ['Host', upstreamHost, ...fields],
        body: null,
      };
      exchange = engine.dispatch(request, {
        onHead(answerStatus, _reason, list) {
          status = answerStatus;
          answerFields = list;
        },
        onData(chunk) {
          if (collected.length + chunk.length > maxBodyBytes) stop('invalid');
          else collected.add(chunk);
          return true;
        },
        onEnd() {
          clearTimeout(timer);
          resolve({ status, fields: answerFields, body: collected.octets() });
        },
        onFault(fault) {
          clearTimeout(timer);
          resolve({ fault: end ?? errorOf(fault) });
        },
      });
    });
}

/** In the words of `upstream/forward.ts`. */
function errorOf({ kind, answerBegun }: UpstreamFault): LookupError['fault'] {
  if (kind === 'connect-timeout') return 'timeout';
  if (kind === 'overloaded') return 'overloaded';
  return kind === 'malformed' || (kind === 'reset' && answerBegun) ? 'invalid' : 'unreachable';
}
