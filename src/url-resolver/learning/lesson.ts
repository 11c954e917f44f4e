import type { CanonicalRequest } from '../../http/canonical-request.ts';
import type { FieldList } from '../../http/field-list.ts';
import { cacheMapping, freshUntilMs, isFound, type Lifetimes } from '../cache/cached-mapping.ts';
import type { LocalCache } from '../cache/local-cache.ts';
import type { Mapping } from '../mapping.ts';
import type { Position } from '../purge/purge.ts';
import type { PurgeHistory } from '../purge/purge-history.ts';
import { mappingKey } from '../request/key.ts';
import type { createPartitions } from '../request/partition.ts';
import { readResolverFields } from '../request/resolver-fields.ts';
import { readResolverQuery, unusable } from '../request/url-parameter.ts';
import type { ResolverCounts } from '../resolver-stats.ts';
import { extractMappings } from './extract-mappings.ts';
import { hasPlainNames, isTeachable, isTrustworthy } from './may-learn.ts';

/** What may be learnt from one response. */
export interface Lesson {
  /** A longer body is not learnt from. */
  readonly maxBodyBytes: number;
  /** Takes fields and whole body of a 200; the work is done later, or not at all when there is too much of it. */
  learn(fields: FieldList, body: Buffer): void;
}

export interface LessonBookOptions {
  readonly local: LocalCache;
  readonly history: PurgeHistory;
  readonly findPartition: ReturnType<typeof createPartitions>;
  readonly lifetimes: Lifetimes;
  readonly tagOf: (mapping: Mapping, locale: string) => string;
  readonly counts: ResolverCounts;
  readonly now: () => number;
}

const maxBodyBytes = 256 * 1024;
const maxWaiting = 16;

interface Task {
  readonly body: Buffer;
  readonly stamp: Position;
  readonly locale: string;
  readonly prefix: string;
}

/**
 * Learns mappings from passing responses: positives only, in this process only, one response a turn of the event loop.
 * The stamp is taken before the request is forwarded, so that a purge meanwhile covers what is learnt.
 */
export class LessonBook {
  readonly #options: LessonBookOptions;
  readonly #waiting: Task[] = [];

  constructor(options: LessonBookOptions) {
    this.#options = options;
  }

  start(request: CanonicalRequest): Lesson | undefined {
    if (!isTeachable(request)) return undefined;
    const { acceptLanguage, store } = readResolverFields(request.fields);
    const query = readResolverQuery(request.query);
    // Which of two stores the shop would take is its own affair.
    const isOneStore = store === undefined || query.store === undefined || store === query.store;
    const sentStore = store ?? query.store;
    if (!isOneStore || sentStore === unusable || !hasPlainNames(request.query)) return undefined;
    const { locale, prefix } = this.#options.findPartition(acceptLanguage, sentStore, request.host);
    if (prefix === undefined) return undefined;
    const stamp = this.#options.history.position;
    const learn: Lesson['learn'] = (fields, body) => {
      if (isTrustworthy(fields, locale)) this.#enqueue({ body, stamp, locale, prefix });
    };
    return { maxBodyBytes, learn };
  }

  #enqueue(task: Task): void {
    if (task.body.length > maxBodyBytes || this.#waiting.length >= maxWaiting) {
      this.#options.counts.lessonsDropped += 1;
      return;
    }
    if (this.#waiting.push(task) === 1) setImmediate(() => this.#work());
  }

  #work(): void {
    const task = this.#waiting.shift();
    if (task !== undefined) this.#keep(task);
    if (this.#waiting.length > 0) setImmediate(() => this.#work());
  }

  #keep({ body, stamp, locale, prefix }: Task): void {
    const { counts, history, lifetimes, local, now, tagOf } = this.#options;
    const nowMs = now();
    for (const [url, mapping] of extractMappings(body)) {
      const key = mappingKey(prefix, url);
      const known = local.get(key, url);
      // What the source itself said is better, as long as it is fresh; but "not found" may be outdated.
      if (known !== undefined && isFound(known) && nowMs < freshUntilMs(known, lifetimes)) continue;
      if (!history.accepts(stamp, url)) continue;
      local.set(key, cacheMapping(mapping, tagOf(mapping, locale), nowMs, stamp.seq));
      counts.learnt += 1;
    }
  }
}
