import type { CanonicalRequest } from '../http/canonical-request.ts';
import { createOwnPathTest } from '../http/path-interpretations.ts';
import type { Lifetimes } from './cache/cached-mapping.ts';
import { LocalCache } from './cache/local-cache.ts';
import { SharedCache } from './cache/shared-cache.ts';
import { type Lesson, LessonBook } from './learning/lesson.ts';
import type { LookupResult } from './lookup.ts';
import { MappingCache } from './mapping-cache.ts';
import { MappingFile } from './mapping-file/mapping-file.ts';
import type { FileProblem } from './mapping-file/problem.ts';
import { defaultLifetimes, type UrlResolverOptions } from './options.ts';
import { MemoryPurgeLog } from './purge/memory-purge-log.ts';
import type { Purge } from './purge/purge.ts';
import { PurgeFollower } from './purge/purge-follower.ts';
import type { PurgeLog } from './purge/purge-log.ts';
import { createPartitions, longestStore, type Partition } from './request/partition.ts';
import { createQueryReader, keyOf } from './request/remember-queries.ts';
import { type ResolverFields, readResolverFields } from './request/resolver-fields.ts';
import { missing, unusable } from './request/url-parameter.ts';
import { startCounts } from './resolver-stats.ts';
import { cacheStatus } from './response/cache-status.ts';
import { createMappingTag } from './response/entity-tag.ts';
import { jsonText } from './response/json-text.ts';
import { refuseFailure, refuseMissing } from './response/refuse.ts';
import { answerMapping, type Provenance, refuseUnknown, varyOf } from './response/write-answer.ts';
import { UpstreamSource } from './sources/upstream-source.ts';
import type { Resolution, ResolverEvent, ResolverStats, UrlResolver } from './url-resolver.ts';

/** Throws when `options` names no source: the configuration has been validated before. */
export function createUrlResolver(options: UrlResolverOptions): UrlResolver {
  return new CachingUrlResolver(options);
}

/** Slots of the shared copies for each entry of a process. */
const slotsPerEntry = 4;

class CachingUrlResolver implements UrlResolver {
  readonly #path: string;
  readonly #pathWithSlash: string;
  readonly #isOtherSpelling: ReturnType<typeof createOwnPathTest>;
  /** As it stands in a JSON string. */
  readonly #publicUrl: string | undefined;
  readonly #vary: string;
  readonly #tagOf: ReturnType<typeof createMappingTag>;
  readonly #lifetimes: Lifetimes;
  readonly #findPartition: ReturnType<typeof createPartitions>;
  readonly #readQuery = createQueryReader();
  readonly #counts = startCounts();
  readonly #emit: (event: ResolverEvent) => void;
  readonly #purgeLog: PurgeLog;
  readonly #follower: PurgeFollower;
  readonly #local: LocalCache;
  readonly #shared: SharedCache | undefined;
  readonly #source: UpstreamSource | undefined;
  readonly #cache: MappingCache | undefined;
  readonly #file: MappingFile | undefined;
  readonly #lessons: LessonBook | undefined;

  constructor(options: UrlResolverOptions) {
    if (options.upstream === undefined && options.mappingFile === undefined) {
      throw new Error('the URL resolver has no source');
    }
    const { maxEntries = 100_000, now = Date.now } = options;
    this.#path = options.path ?? '/url-resolver';
    this.#pathWithSlash = `${this.#path}/`;
    const noRules = { ignoredPrefixes: [], versionSegments: false };
    this.#isOtherSpelling = createOwnPathTest(this.#path, options.paths ?? noRules);
    this.#publicUrl = options.publicUrl === undefined ? undefined : jsonText(options.publicUrl);
    this.#vary = varyOf(options.publicUrl === undefined || options.storeByHost === true);
    this.#tagOf = createMappingTag(options.publicUrl ?? '');
    this.#lifetimes = { ...defaultLifetimes, ...options.lifetimes };
    const lifetimes = this.#lifetimes;
    const { locales = ['en', 'de'], defaultLocale = 'en', stores = [], storeByHost = false } = options;
    this.#findPartition = createPartitions({ locales, defaultLocale, stores, byHost: storeByHost });
    this.#emit = options.onEvent ?? (() => {});
    this.#purgeLog = options.shared?.purgeLog ?? new MemoryPurgeLog();
    this.#follower = new PurgeFollower(this.#purgeLog, () => this.#forget());
    this.#local = new LocalCache(maxEntries, this.#follower.history);
    if (options.mappingFile !== undefined) {
      this.#file = new MappingFile({ ...options.mappingFile, onEvent: this.#emit });
    }
    if (options.upstream === undefined) return;

    const emit = this.#emit;
    if (options.shared !== undefined) {
      this.#shared = new SharedCache({
        store: options.shared.mappings,
        slots: maxEntries * slotsPerEntry,
        timeoutMs: options.shared.timeoutMs ?? 100,
        lifetimes,
        now,
        onChange: (isAway, cause) => emit(isAway ? { kind: 'shared-away', cause } : { kind: 'shared-back' }),
      });
    }
    this.#source = new UpstreamSource({
      ask: options.upstream.ask,
      path: this.#path,
      timeoutMs: options.upstream.timeoutMs ?? 10_000,
      maxQuestions: options.upstream.maxQuestions ?? 128,
      onException: (cause) => emit({ kind: 'source-exception', cause }),
    });
    this.#cache = new MappingCache({
      local: this.#local,
      shared: this.#shared,
      source: this.#source,
      follower: this.#follower,
      lifetimes,
      staleWaitMs: options.staleWaitMs ?? 1000,
      tagOf: this.#tagOf,
      counts: this.#counts,
      onFailure: ({ fault, reason }) => emit({ kind: 'source-failed', fault, reason }),
      now,
    });
    if (options.learning === true) {
      this.#lessons = new LessonBook({
        local: this.#local,
        history: this.#follower.history,
        findPartition: this.#findPartition,
        lifetimes,
        tagOf: this.#tagOf,
        counts: this.#counts,
        now,
      });
    }
  }

  async start(): Promise<readonly FileProblem[]> {
    const [problems] = await Promise.all([this.#file?.start() ?? [], this.#follower.start()]);
    return problems;
  }

  answer(request: CanonicalRequest): Resolution | Promise<Resolution> | undefined {
    const { method, path } = request;
    if (method !== 'GET' && method !== 'HEAD') return undefined;
    const isOwn = path === this.#path || path === this.#pathWithSlash || this.#isOtherSpelling(request);
    if (!isOwn) return undefined;
    const read = this.#readQuery(request.query);
    const { url, selfQuery } = read;
    if (typeof url !== 'string') return this.#refuseValue(url);
    const fields = readResolverFields(request.fields);
    const store = fields.store ?? read.store;
    if (store === unusable || (store !== undefined && store.length > longestStore)) {
      return this.#refuseValue(unusable);
    }
    const partition = this.#findPartition(fields.acceptLanguage, store, request.host);
    const { prefix } = partition;
    const key = prefix === undefined ? undefined : keyOf(read, prefix, url);
    const result =
      this.#findInFile(url, partition) ??
      this.#cache?.find({ url, partition, key }) ??
      notInFile(this.#lifetimes);
    if (result instanceof Promise) {
      return result.then((settled) => this.#write(settled, request, fields, partition.locale, selfQuery));
    }
    return this.#write(result, request, fields, partition.locale, selfQuery);
  }

  startLesson(request: CanonicalRequest): Lesson | undefined {
    return this.#lessons?.start(request);
  }

  async purge(purge: Purge): Promise<'purged' | 'unavailable'> {
    try {
      this.#follower.hear(await this.#purgeLog.append(purge));
    } catch {
      return 'unavailable';
    }
    await this.#follower.catchUp();
    return 'purged';
  }

  async reload(): Promise<readonly FileProblem[]> {
    return (await this.#file?.reload()) ?? [];
  }

  stats(): ResolverStats {
    return {
      ...this.#counts,
      entries: this.#local.size,
      questionsUnderWay: this.#source?.underWay ?? 0,
      flights: this.#cache?.flights ?? 0,
      sharedAway: this.#shared?.isAway ?? false,
      purgeSeq: this.#follower.history.position.seq,
      file: this.#file?.state,
    };
  }

  async close(): Promise<void> {
    this.#follower.stop();
    await this.#file?.close();
  }

  #findInFile(url: string, partition: Partition): LookupResult | undefined {
    const file = this.#file;
    if (file === undefined) return undefined;
    const mapping = file.find(url, partition.store || partition.host);
    if (mapping === undefined) {
      if (this.#cache === undefined) this.#counts.fileAnswers += 1;
      return undefined;
    }
    this.#counts.fileAnswers += 1;
    const tag = this.#tagOf(mapping, partition.locale);
    return { kind: 'known', mapping, tag, provenance: fromFile(this.#lifetimes.ttlMs) };
  }

  #refuseValue(value: typeof missing | typeof unusable): Resolution {
    if (value === missing) {
      this.#counts.missing += 1;
      return refuseMissing;
    }
    this.#counts.unusable += 1;
    const maxAgeSeconds = Math.floor(this.#lifetimes.notFoundTtlMs / 1000);
    return refuseUnknown({ cacheStatus: cacheStatus.unasked, maxAgeSeconds }, this.#vary);
  }

  #write(
    result: LookupResult,
    request: CanonicalRequest,
    fields: ResolverFields,
    locale: string,
    selfQuery: string,
  ): Resolution {
    switch (result.kind) {
      case 'known': {
        const base = this.#publicUrl ?? `${request.scheme}://${jsonText(request.host)}`;
        const self = base + jsonText(request.path) + selfQuery;
        const { mapping, tag, provenance } = result;
        const representation = { tag, locale, self, vary: this.#vary };
        const isHead = request.method === 'HEAD';
        return answerMapping(mapping, representation, isHead, fields.ifNoneMatch, provenance);
      }
      case 'unknown':
        return refuseUnknown(result.provenance, this.#vary);
      case 'missing':
        return refuseMissing;
      case 'failed':
        return refuseFailure(result);
    }
  }

  #forget(): void {
    // The first reading of the log is no loss.
    if (this.#local.size > 0) {
      this.#counts.forgotten += 1;
      this.#emit({ kind: 'forgotten' });
    }
    this.#local.clear();
  }
}

function fromFile(lifetimeMs: number): Provenance {
  return { cacheStatus: cacheStatus.mappingFile, maxAgeSeconds: Math.floor(lifetimeMs / 1000) };
}

function notInFile(lifetimes: Lifetimes): LookupResult {
  return { kind: 'unknown', provenance: fromFile(lifetimes.notFoundTtlMs) };
}
