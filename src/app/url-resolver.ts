import { counter, gauge, type Health, healthOf, type MetricSpec, total } from '../lib/component.ts';
import { FairSemaphore } from '../lib/fair-semaphore.ts';
import { formatProblem } from '../lib/problem.ts';
import type { Filter } from '../proxy/filter.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { UpstreamClient, UpstreamExchange, UpstreamFault } from '../upstream/port.ts';
import { CollectedBody } from '../upstream/request-body.ts';
import { createResolverMatcher, type ResolverMatcher, UrlResolver } from '../url-resolver/filter.ts';
import type { ResolverEvent } from '../url-resolver/options.ts';
import { createRedisPurgeLog } from '../url-resolver/purges.ts';
import type { AskUpstream, LookupError } from '../url-resolver/source.ts';
import type { FilterDefinition, FilterDependencies } from './filter-definition.ts';
import { forwardsHost, questionConnections, upstreamHostOf } from './upstream.ts';

interface UrlResolverFilter extends Filter<true> {
  readonly resolver: UrlResolver;
}

export const urlResolverDefinition: FilterDefinition<ResolverMatcher, UrlResolverFilter> = {
  name: 'url-resolver',
  title: 'URL resolver',
  stage: 'endpoint',
  compile({ urlResolver, request = { ignoredPrefixes: [] } }) {
    return urlResolver ? createResolverMatcher(urlResolver.path, request) : undefined;
  },
  create(matcher, dependencies) {
    const client = dependencies.createQuestionClient();
    const resolver = createResolver(dependencies, client);
    return {
      ...matcher,
      resolver,
      run: (_match, { request }) => resolver.answer(request),
      async start() {
        const problems = await resolver.start();
        if (problems.length > 0) throw new Error(problems.map(formatProblem).join('\n'));
      },
      health: () => resolverHealth(resolver),
      metrics: metricSpecs(resolver),
      async reload() {
        await resolver.reload();
      },
      async close() {
        await resolver.close();
        await client.close();
      },
    };
  },
};

function createResolver(
  { config, redis, log, metrics }: FilterDependencies,
  client: UpstreamClient,
): UrlResolver {
  const { urlResolver: settings, upstream, store } = config;
  if (settings === false) throw new TypeError('urlResolver is off');
  const { source, ttl, notFoundTtl, staleWhileRevalidate, staleIfError, ...more } = settings;
  return new UrlResolver({
    ...more,
    publicUrl: config.publicUrl,
    storeByHost: forwardsHost(config),
    upstream: source.upstream
      ? {
          ask: createAskUpstream(client, upstreamHostOf(config)),
          timeoutMs: Math.min(upstream.responseTimeout, 10_000),
          // One client gets half of the capacity, so twice `inFlight` lets every request in progress wait.
          permits: new FairSemaphore({ permits: questionConnections, capacity: 2 * config.limits.inFlight }),
        }
      : undefined,
    mappingFile: source.file === undefined ? undefined : { path: source.file },
    lifetimes: {
      ttlMs: ttl,
      notFoundTtlMs: notFoundTtl,
      staleWhileRevalidateMs: staleWhileRevalidate,
      staleIfErrorMs: staleIfError,
    },
    purgeLog: redis && createRedisPurgeLog(redis.redis, `${store.prefix}:url`),
    onEvent: (event) => emit(event, log, metrics),
  });
}

function resolverHealth(resolver: UrlResolver): Health {
  const stats = resolver.stats();
  const { file } = stats;
  const problems = file?.problems ?? [];
  const reasons = problems.map(
    ({ file: name, line, column, text }) => `mapping file: ${name}:${line}:${column}: ${text}`,
  );
  const ofFile = `the last edit of the mapping file is ${problems.length > 0 ? 'not in force' : 'in force'}`;
  return healthOf(reasons, {
    text: file === undefined ? 'mappings of the shop are kept' : ofFile,
    problems,
    details: [
      total('entries', stats.entries),
      ...counters.map(([name, , key]) => total(name.replaceAll('_', ' '), stats[key])),
      // Every process reads the same file.
      ...(file ? [{ label: 'file rows', value: file.rows, combine: 'max' } as const] : []),
    ],
  });
}

const counters = [
  ['hits', 'Answers from fresh mappings of this process.', 'hits'],
  ['not_found_hits', 'Answers from remembered "not found".', 'notFoundHits'],
  ['stale_hits', 'Answers from stale mappings.', 'staleHits'],
  ['file_answers', 'Answers from the mapping file.', 'fileAnswers'],
  ['misses', 'Requests that waited for the shop.', 'misses'],
  ['questions_asked', 'Questions to the shop.', 'lookups'],
  ['failures', 'Questions without a usable answer of the shop.', 'failures'],
  [
    'passed_on',
    'Requests that were forwarded, because the answer of the shop has an unknown form.',
    'passedOn',
  ],
] as const;

function metricSpecs(resolver: UrlResolver): MetricSpec[] {
  const stats = () => resolver.stats();
  return [
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
      () => (stats().file?.problems.length ? 0 : 1),
    ),
    ...counters.map(([name, help, key]) => counter(`shopward_url_${name}`, help, () => stats()[key])),
  ];
}

/** Kind of an event -> how it is logged. */
const logged = {
  'file-loaded': ['info', 'mapping-loaded', 'the mapping file is in force'],
  'file-refused': ['error', 'mapping-refused', 'the mapping file was not loaded'],
  'source-failed': ['debug', 'url-source-failed', 'the shop gave no mapping'],
  'source-exception': ['warn', 'source-exception', 'a lookup failed'],
  forgotten: ['info', 'forgotten', 'the mappings were dropped: Redis was emptied or replaced'],
} as const;

function emit({ kind, ...fields }: ResolverEvent, log: Log, metrics: Metrics): void {
  metrics.countEvent('url-resolver', kind);
  const [level, event, text] = logged[kind];
  log[level]({ event, ...fields }, text);
}

/** Sends the resolver's lookups to the upstream; `upstreamHost`: for lookups without a Host. Exported for its tests. */
export function createAskUpstream(client: UpstreamClient, upstreamHost: string): AskUpstream {
  return ({ target, fields, timeoutMs, maxBodyBytes }) =>
    new Promise((resolve) => {
      const collected = new CollectedBody(maxBodyBytes);
      let status = 0;
      let answerFields: readonly string[] = [];
      let end: 'timeout' | 'too-large' | undefined;
      let exchange: UpstreamExchange | undefined;
      const stop = (why: 'timeout' | 'too-large') => {
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
      exchange = client.dispatch(request, {
        onHead(answerStatus, _reason, list) {
          status = answerStatus;
          answerFields = list;
        },
        onData(chunk) {
          if (collected.length + chunk.length > maxBodyBytes) stop('too-large');
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

function errorOf({ kind, answerBegun }: UpstreamFault): LookupError['fault'] {
  if (kind === 'connect-timeout') return 'timeout';
  if (kind === 'overloaded') return 'overloaded';
  return kind === 'malformed' || (kind === 'reset' && answerBegun) ? 'invalid' : 'unreachable';
}
