import type { CanonicalRequest } from '../http/canonical-request.ts';
import { networkOf } from '../http/peer.ts';
import type { Answer, Rejection } from '../http/rejection.ts';
import type { Eventually } from '../lib/eventually.ts';
import type { Problem } from '../lib/problem.ts';
import type { Matcher } from '../proxy/filter.ts';
import { createOwnPathTest } from '../routes/path-interpretations.ts';
import type { PathRules } from '../routes/path-table.ts';
import { createMappingTag, jsonText } from './envelope.ts';
import { type Lifetimes, LocalCache } from './local-cache.ts';
import { MappingCache, type MappingResult } from './mapping-cache.ts';
import { MappingFile } from './mapping-file/mapping-file.ts';
import { type ResolverEvent, type ResolverStats, startCounts, type UrlResolverOptions } from './options.ts';
import { createPartitions, longestStore, type Partition } from './partition.ts';
import { type Purge, PurgeFollower } from './purges.ts';
import {
  createQueryReader,
  keyOf,
  missing,
  type ReadQuery,
  type ResolverFields,
  readResolverFields,
  unusable,
} from './resolver-query.ts';
import {
  answerMapping,
  cacheStatus,
  type Provenance,
  refuseFailure,
  refuseMissing,
  refuseUnknown,
  varyOf,
} from './response.ts';
import { UpstreamSource } from './source.ts';

export type ResolverMatcher = Matcher<true>;

/** Matches GET and HEAD of the resolver's path, in every spelling that the shop routes to it. */
export function createResolverMatcher(path: string, paths: PathRules): ResolverMatcher {
  const isOtherSpelling = createOwnPathTest(path, paths);
  return {
    name: 'url-resolver',
    route: path,
    pathEnd: path.slice(1),
    match(request) {
      if (request.method !== 'GET' && request.method !== 'HEAD') return undefined;
      const isPlain = request.path === path || request.path === `${path}/`;
      return isPlain || isOtherSpelling(request) || undefined;
    },
    describe: () => ({
      text: 'by the URL resolver, from its mapping; needs no token (if the shop answers in another form, the request is forwarded under the list)',
    }),
  };
}

type Resolution = Answer | Rejection;

/** The URL resolver: answers, purges, reloads. */
export class UrlResolver {
  /** Escaped for a JSON string. */
  readonly #publicUrl: string | undefined;
  readonly #vary: string;
  readonly #tagOf: ReturnType<typeof createMappingTag>;
  readonly #lifetimes: Lifetimes;
  readonly #findPartition: ReturnType<typeof createPartitions>;
  readonly #readQuery = createQueryReader();
  readonly #counts = startCounts();
  readonly #emit: (event: ResolverEvent) => void;
  readonly #follower: PurgeFollower;
  readonly #local: LocalCache;
  readonly #source: UpstreamSource | undefined;
  readonly #cache: MappingCache | undefined;
  readonly #file: MappingFile | undefined;

  constructor(options: UrlResolverOptions) {
    const { entityTypes, lifetimes, locales, maxEntries, publicUrl = '', stores, storeByHost } = options;
    const { now = () => performance.now() } = options;
    this.#publicUrl = options.publicUrl === undefined ? undefined : jsonText(options.publicUrl);
    this.#vary = varyOf(options.publicUrl === undefined || storeByHost);
    this.#tagOf = createMappingTag(publicUrl);
    this.#lifetimes = lifetimes;
    this.#findPartition = createPartitions(locales, stores, storeByHost);
    this.#emit = options.onEvent ?? (() => {});
    this.#follower = new PurgeFollower(options.purgeLog, () => {
      // At the first reading of the log nothing is lost.
      if (this.#local.size > 0) this.#emit({ kind: 'forgotten' });
    });
    this.#local = new LocalCache(maxEntries, this.#follower.purges);
    if (options.mappingFile !== undefined) {
      this.#file = new MappingFile({ ...options.mappingFile, entityTypes, onEvent: this.#emit });
    }
    if (options.upstream === undefined) return;

    const emit = this.#emit;
    this.#source = new UpstreamSource({
      ...options.upstream,
      path: options.path,
      entityTypes,
      onException: (err) => emit({ kind: 'source-exception', err }),
    });
    this.#cache = new MappingCache({
      local: this.#local,
      source: this.#source,
      purges: this.#follower.purges,
      lifetimes,
      staleWaitMs: options.staleWaitMs ?? 1000,
      tagOf: this.#tagOf,
      counts: this.#counts,
      onFailure: ({ fault, reason }) => emit({ kind: 'source-failed', fault, reason }),
      now,
    });
  }

  /** Reads the mapping file and follows the purges. Resolves to the problems of the file; none: it is in force. */
  async start(): Promise<readonly Problem[]> {
    const [problems] = await Promise.all([this.#file?.start() ?? [], this.#follower.start()]);
    return problems;
  }

  /**
   * Answers a request that the matcher has found, without a promise where it can. Undefined: the request is to be forwarded,
   * since the shop has an answer of another form. Never throws, never rejects.
   */
  answer(request: CanonicalRequest): Eventually<Resolution | undefined> {
    const read = this.#readQuery(request.query);
    const { url } = read;
    if (typeof url !== 'string') return this.#withoutUrl(url);
    const fields = readResolverFields(request.fields);
    const store = fields.store ?? read.store;
    if (store === unusable || (store !== undefined && store.length > longestStore)) {
      return this.#withoutUrl(unusable);
    }
    const partition = this.#findPartition(fields.acceptLanguage, store, request.host);
    const { prefix } = partition;
    const key = prefix === undefined ? undefined : keyOf(read, prefix, url);
    const result =
      this.#findInFile(url, partition) ??
      this.#cache?.find({ url, partition, client: networkOf(request.clientAddress), key }) ??
      notInFile(this.#lifetimes);
    if (result instanceof Promise) {
      return result.then((outcome) => this.#write(outcome, request, fields, partition.locale, read));
    }
    return this.#write(result, request, fields, partition.locale, read);
  }

  /** Purges in all replicas; `unavailable`: the store does not answer, so they may miss it. Mapping files are not purged. */
  async purge(purge: Purge): Promise<'purged' | 'unavailable'> {
    try {
      await this.#follower.purge(purge);
      return 'purged';
    } catch {
      return 'unavailable';
    }
  }

  /** Reads the mapping file now. If it has problems, the last good one stays in force. */
  async reload(): Promise<readonly Problem[]> {
    return (await this.#file?.reload()) ?? [];
  }

  stats(): ResolverStats {
    return {
      ...this.#counts,
      entries: this.#local.size,
      lookupsUnderWay: this.#source?.underWay ?? 0,
      file: this.#file?.state,
    };
  }

  async close(): Promise<void> {
    this.#follower.stop();
    await this.#file?.close();
  }

  #findInFile(url: string, partition: Partition): MappingResult | undefined {
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

  #withoutUrl(value: typeof missing | typeof unusable): Rejection {
    if (value === missing) return refuseMissing;
    const maxAgeSeconds = Math.floor(this.#lifetimes.notFoundTtlMs / 1000);
    return refuseUnknown({ cacheStatus: cacheStatus.unasked, maxAgeSeconds }, this.#vary);
  }

  #write(
    result: MappingResult,
    request: CanonicalRequest,
    fields: ResolverFields,
    locale: string,
    { selfQuery }: ReadQuery,
  ): Resolution | undefined {
    switch (result.kind) {
      case 'known': {
        const base = this.#publicUrl ?? `${request.scheme}://${jsonText(request.host)}`;
        const self = base + jsonText(request.path) + selfQuery;
        const { mapping, tag, provenance } = result;
        const representation = { mapping, tag, locale, self, vary: this.#vary };
        return answerMapping(representation, request.method === 'HEAD', fields.ifNoneMatch, provenance);
      }
      case 'unknown':
        return refuseUnknown(result.provenance, this.#vary);
      case 'missing':
        return refuseMissing;
      case 'failed':
        if (result.fault === 'unrecognized') this.#counts.passedOn += 1;
        return refuseFailure(result);
    }
  }
}

function fromFile(lifetimeMs: number): Provenance {
  return { cacheStatus: cacheStatus.mappingFile, maxAgeSeconds: Math.floor(lifetimeMs / 1000) };
}

function notInFile(lifetimes: Lifetimes): MappingResult {
  return { kind: 'unknown', provenance: fromFile(lifetimes.notFoundTtlMs) };
}
