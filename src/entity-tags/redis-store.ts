import { RedisUnavailable } from '../redis/faults.ts';
import type { Redis, RedisArgument, RedisScript } from '../redis/redis.ts';
import { buildTagScripts, type TagScripts } from './lua.ts';
import { createStoreClock } from './store-clock.ts';
import type {
  Claim,
  ClaimAnswer,
  ClaimEnd,
  LookUp,
  ReadEnd,
  ReadStamp,
  ReadTag,
  ResourceKey,
  TagStore,
} from './tag-store.ts';
import type { EntityTagTimes } from './times.ts';

export interface RedisTagStoreOptions {
  readonly redis: Redis;
  readonly times: Pick<
    EntityTagTimes,
    'leaseMs' | 'sendByMs' | 'coldStartMs' | 'longestReadMs' | 'recordExpiryMs' | 'strangersExpiryMs'
  >;
  /** Milliseconds; asked at each call, since replicas with a longer lease may come. Default `times.coldStartMs`. */
  readonly coldStartMs?: () => number;
  /** A cold start has begun while none was known: any script may be the first to meet another data set. */
  readonly onColdStart?: (coldStartMs: number) => void;
  /** Begins every key; deployments that share a Redis need different ones. Default `shopward`. */
  readonly keyPrefix?: string;
  /**
   * How many replicas must have a claim before it counts: all that could be promoted. Default 0, that is none: then a
   * failover may lose a claim that was granted, and with it an update.
   */
  readonly replicas?: number;
  /** Milliseconds, monotonic. Default `performance.now`. */
  readonly now?: () => number;
  /** Default `buildTagScripts()`. */
  readonly scripts?: TagScripts;
}

/** Markers of a Cluster: enough to spread over the nodes, few enough to warm up at the start. */
const clusterBuckets = 64;

type Reply = readonly string[];

/** Tags shared by every replica, in a Redis of one node, behind Sentinels, or in a Cluster. */
export class RedisTagStore implements TagStore {
  readonly kind = 'redis';
  readonly #redis: Redis;
  readonly #scripts: TagScripts;
  readonly #replicas: number;
  readonly #prefix: string;
  readonly #buckets: number;
  readonly #times: RedisTagStoreOptions['times'];
  readonly #coldStartMs: () => number;
  readonly #onColdStart: (coldStartMs: number) => void;
  readonly #now: () => number;
  /** When the cold start of each marker ends, by our clock. */
  readonly #coldStartUntilMs = new Map<number, number>();
  readonly #clock: ReturnType<typeof createStoreClock>;

  constructor({
    redis,
    times,
    coldStartMs,
    onColdStart,
    keyPrefix,
    replicas,
    now,
    scripts,
  }: RedisTagStoreOptions) {
    this.#redis = redis;
    this.#scripts = scripts ?? buildTagScripts();
    this.#replicas = replicas ?? 0;
    this.#prefix = keyPrefix ?? 'shopward';
    this.#buckets = redis.kind === 'cluster' ? clusterBuckets : 1;
    this.#times = times;
    this.#coldStartMs = coldStartMs ?? (() => times.coldStartMs);
    this.#onColdStart = onColdStart ?? (() => {});
    this.#now = now ?? (() => performance.now());
    this.#clock = createStoreClock(this.#now);
  }

  async lookUp(key: ResourceKey, variant: string | null): Promise<LookUp> {
    const bucket = this.#bucketOf(key);
    const reply = await this.#run(this.#scripts.lookUp, bucket, key, [variant ?? '']);
    const [epoch = '', now = '', , why = '', generation = '', tag = '', recorded = ''] = reply;
    return {
      stamp:
        why === 'cold-start' || why === 'indeterminate'
          ? null
          : { epoch, generation: Number(generation), startedAt: Number(now) },
      tag: tag === '' ? null : tag,
      unsettled: why === 'cold-start' || why === 'indeterminate' || why === 'lease' ? why : null,
      recorded: recorded === '' ? null : readEntry(recorded, Number(now)),
    };
  }

  readStampAt(key: ResourceKey, startedAt: number, earlier: ReadStamp | null = null): ReadStamp | null {
    const stamp = this.#clock.readStampAt(this.#bucketOf(key), startedAt);
    if (stamp === null || earlier === null || earlier.epoch !== stamp.epoch) return stamp;
    return earlier.startedAt > stamp.startedAt ? earlier : stamp;
  }

  hasHeard(key: ResourceKey): boolean {
    return this.#clock.hasHeard(this.#bucketOf(key));
  }

  async endRead(key: ResourceKey, read: ReadEnd): Promise<ReadTag | null> {
    const { stamp } = read;
    const reply = await this.#run(
      this.#scripts.endRead,
      this.#bucketOf(key),
      key,
      [
        stamp.epoch,
        stamp.generation ?? '',
        stamp.startedAt,
        read.variant,
        read.fingerprint ?? '',
        read.newTag,
        read.shopTag ?? '',
        read.isOfCollection ? '1' : '0',
        read.fields ?? '',
        read.isOfStranger === true ? '0' : '1',
      ],
      read.isOfStranger,
    );
    const [, , , tag = '', unchanged, replaced] = reply;
    return tag === '' ? null : { tag, isUnchanged: unchanged === '1', isReplaced: replaced === '1' };
  }

  async claim(key: ResourceKey, { token, tags, isOfStranger, isOpen }: Claim): Promise<ClaimAnswer> {
    const bucket = this.#bucketOf(key);
    const kind = isOpen === true ? 'o' : tags === null ? '0' : '1';
    const mayHaveTurn = isOfStranger === true ? '0' : '1';
    const args = [token, this.#times.sendByMs * 1000, kind, mayHaveTurn, ...(tags ?? [])];
    if (this.#replicas === 0) {
      return readClaim(await this.#run(this.#scripts.claim, bucket, key, args, isOfStranger));
    }
    const askedAt = this.#now();
    const { reply, replicas } = await this.#redis.runScriptAndWait(
      this.#scripts.claim,
      this.#keys(bucket, key),
      [...this.#timeArgs(isOfStranger), ...args],
      this.#replicas,
    );
    const answer = readClaim(this.#hear(bucket, reply, askedAt));
    return answer.kind === 'granted' && replicas < this.#replicas ? { kind: 'not-replicated' } : answer;
  }

  async markSent(key: ResourceKey, token: string): Promise<boolean> {
    const args = [token, this.#times.sendByMs * 1000];
    const [, , , isOwn] = await this.#run(this.#scripts.markSent, this.#bucketOf(key), key, args);
    return isOwn === '1';
  }

  async end(key: ResourceKey, write: ClaimEnd): Promise<string | null> {
    const { token, tagged, outcome, newTag, shopTag, isOfStranger, isOpen } = write;
    const args = [token, isOpen === true ? 'o' : tagged ? '1' : '0', outcome, newTag ?? '', shopTag ?? ''];
    const reply = await this.#run(this.#scripts.end, this.#bucketOf(key), key, args, isOfStranger);
    return reply[3] || null;
  }

  async warmUp(): Promise<number> {
    const nowhere = '-' as ResourceKey;
    const buckets = Array.from({ length: this.#buckets }, (_, bucket) => bucket);
    const left = buckets.map(async (bucket) => {
      const [, now, coldStartUntil] = await this.#run(this.#scripts.lookUp, bucket, nowhere, ['']);
      return (Number(coldStartUntil) - Number(now)) / 1000;
    });
    return Math.max(0, ...(await Promise.all(left)));
  }

  coldStartLeftMs(): number {
    let until = 0;
    for (const each of this.#coldStartUntilMs.values()) until = Math.max(until, each);
    return Math.max(0, until - this.#now());
  }

  async close(): Promise<void> {}

  /** First arguments of every script. */
  #timeArgs(isOfStranger = false): number[] {
    const { leaseMs, longestReadMs, recordExpiryMs, strangersExpiryMs } = this.#times;
    const expiryMs = isOfStranger ? strangersExpiryMs : recordExpiryMs;
    return [leaseMs * 1000, this.#coldStartMs() * 1000, longestReadMs * 1000, expiryMs];
  }

  async #run(
    script: RedisScript,
    bucket: number,
    key: ResourceKey,
    args: readonly RedisArgument[],
    isOfStranger = false,
  ): Promise<Reply> {
    const all = [...this.#timeArgs(isOfStranger), ...args];
    const askedAt = this.#now();
    return this.#hear(bucket, await this.#redis.runScript(script, this.#keys(bucket, key), all), askedAt);
  }

  /** Braces hold our own bucket number only: no id can choose a slot, and marker and record share one. */
  #keys(bucket: number, key: ResourceKey): [string, string] {
    const tag = `${this.#prefix}:{tags-${bucket}}`;
    return [`${tag}:epoch`, `${tag}:${key}`];
  }

  /** Keys are digests, so their first characters are spread evenly. */
  #bucketOf(key: ResourceKey): number {
    return this.#buckets === 1 ? 0 : Number.parseInt(key.slice(0, 8), 16) % this.#buckets;
  }

  #hear(bucket: number, reply: unknown, askedAt: number): Reply {
    if (typeof reply !== 'string') throw new RedisUnavailable('error');
    const lines = reply.split('\n');
    const [epoch = '', now, coldStartUntil] = lines;
    this.#clock.hear(bucket, epoch, Number(now), askedAt);
    const coldStartMs = (Number(coldStartUntil) - Number(now)) / 1000;
    if (coldStartMs > 0) this.#startCold(bucket, coldStartMs);
    else this.#coldStartUntilMs.delete(bucket);
    return lines;
  }

  #startCold(bucket: number, coldStartMs: number): void {
    const isNews = this.coldStartLeftMs() === 0;
    this.#coldStartUntilMs.set(bucket, this.#now() + coldStartMs);
    if (isNews) this.#onColdStart(coldStartMs);
  }
}

function readClaim(reply: Reply): ClaimAnswer {
  const [, , , kind, micros, shopTag = ''] = reply;
  const remainingMs = Number(micros) / 1000;
  switch (kind) {
    case 'granted':
      return { kind, shopTag: shopTag === '' ? null : shopTag };
    case 'not-current':
      return { kind };
    case 'busy':
    case 'indeterminate':
    case 'cold-start':
      return { kind, remainingMs };
    default:
      throw new RedisUnavailable('error');
  }
}

function readEntry(entry: string, now: number): LookUp['recorded'] {
  const first = entry.indexOf('|');
  const second = entry.indexOf('|', first + 1);
  return { ageMs: (now - Number(entry.slice(first + 1, second))) / 1000, fields: entry.slice(second + 1) };
}
