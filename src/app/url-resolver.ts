import type { Config } from '../config/schema.ts';
import type { PathRules } from '../http/path-table.ts';
import type { Gate, OwnEndpoint } from '../proxy/pipeline.ts';
import type { Redis } from '../redis/redis.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { UpstreamEngine } from '../upstream/engine.ts';
import { createUrlResolver } from '../url-resolver/create-url-resolver.ts';
import { createRedisPurgeLog } from '../url-resolver/redis/redis-purge-log.ts';
import { createRedisSharedMapping } from '../url-resolver/redis/redis-shared-mapping.ts';
import type { ResolverEvent, UrlResolver } from '../url-resolver/url-resolver.ts';
import { createAskUpstream } from './ask-upstream.ts';
import type { Part } from './part.ts';

export interface UrlResolverInput {
  readonly settings: Exclude<Config['urlResolver'], false>;
  /** How paths are read (`request`). */
  readonly paths: PathRules;
  readonly publicUrl: string | undefined;
  readonly forwardHost: boolean;
  readonly responseTimeoutMs: number;
  /** For questions of our own, with connections of its own. */
  readonly engine: UpstreamEngine;
  readonly maxQuestions: number;
  readonly upstreamHost: string;
  readonly redis: Redis | undefined;
  /** Begins all keys in the store. */
  readonly storePrefix: string;
  readonly log: Log;
  readonly metrics: Metrics;
}

export interface UrlResolverPart extends Part {
  readonly resolver: UrlResolver;
  readonly endpoint: OwnEndpoint;
  /** Learns from passing responses, where that is switched on. */
  readonly learning: Gate | undefined;
}

export function createUrlResolverPart(input: UrlResolverInput): UrlResolverPart {
  const { settings, redis, log, metrics, engine } = input;
  const keyPrefix = `${input.storePrefix}:url`;
  const resolver = createUrlResolver({
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
          maxQuestions: input.maxQuestions,
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
    learning: settings.learn,
    onEvent: (event) => emit(event, log, metrics),
  });
  const gauge = (name: string, help: string, value: () => number) =>
    metrics.registerGauge({ name, help, value });
  gauge('shopward_url_entries', 'Mappings kept in this process.', () => resolver.stats().entries);
  gauge(
    'shopward_url_questions',
    'Questions to the shop under way.',
    () => resolver.stats().questionsUnderWay,
  );
  // Every process reads the same file.
  metrics.registerGauge({
    name: 'shopward_url_file_rows',
    help: 'Rows of the mapping file in force.',
    value: () => resolver.stats().file?.rows ?? 0,
    aggregate: 'max',
  });
  metrics.registerGauge({
    name: 'shopward_url_file_last_reload_success',
    help: 'Whether the last edit of the mapping file is in force.',
    value: () => (resolver.stats().file?.isLastReloadGood === false ? 0 : 1),
    aggregate: 'min',
  });
  for (const [name, help, key] of counters) {
    metrics.registerCounter({ name: `shopward_url_${name}`, help, value: () => resolver.stats()[key] });
  }

  return {
    resolver,
    endpoint: { route: settings.path, answer: (request) => resolver.answer(request) },
    learning: settings.learn ? learningGate(resolver) : undefined,
    async start() {
      const problems = await resolver.start();
      if (problems.length > 0) {
        throw new Error(
          problems.map(({ file, line, col, text }) => `${file}:${line}:${col}: error: ${text}`).join('\n'),
        );
      }
    },
    reasons() {
      const { sharedAway, file } = resolver.stats();
      const reasons = sharedAway ? ['url resolver: shared copies are away; each process asks by itself'] : [];
      for (const problem of file?.problems ?? []) {
        reasons.push(`mapping file: ${problem.file}:${problem.line}:${problem.col}: ${problem.text}`);
      }
      return reasons;
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
  ['questions_asked', 'Questions to the shop.', 'questions'],
  ['failures', 'Questions that the shop did not answer in a way that counts.', 'failures'],
  ['learnt', 'Mappings learnt from passing responses.', 'learnt'],
] as const;

function learningGate(resolver: UrlResolver): Gate {
  return {
    concerns: (request) => (request.method === 'GET' ? 'head' : false),
    begin(request) {
      const lesson = resolver.startLesson(request);
      if (lesson === undefined) return undefined;
      // The client's answer streams as ever; what passes is put aside, up to what a lesson takes.
      let pieces: Buffer[] | undefined = [];
      let bytes = 0;
      return {
        bufferLimit: 0,
        onChunk(piece) {
          bytes += piece.length;
          if (bytes > lesson.maxBodyBytes) pieces = undefined;
          else pieces?.push(piece);
        },
        onOutcome(outcome) {
          if (outcome.kind === 'answered' && outcome.status === 200 && pieces !== undefined) {
            lesson.learn(outcome.fields, Buffer.concat(pieces));
          }
          return {};
        },
      };
    },
  };
}

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
