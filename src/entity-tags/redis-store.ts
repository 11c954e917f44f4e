import { RedisUnavailable } from '../redis/faults.ts';
import { bucketOf, type RedisArgument, type RedisRecords, runConfirmed, slotOf } from '../redis/redis.ts';
import { buildTagScripts, type TagScripts } from './lua.ts';
import { StoreClock } from './store-clock.ts';
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

interface RedisTagStoreOptions extends RedisRecords {
  readonly times: Pick<
    EntityTagTimes,
    'leaseMs' | 'sendByMs' | 'coldStartMs' | 'longestReadMs' | 'recordExpiryMs' | 'strangersExpiryMs'
  >;
  /** Milliseconds; asked at each call, since replicas with a longer lease may come. Default `times.coldStartMs`. */
  readonly coldStartMs?: () => number;
  /** A cold start has begun while none was known: any script may be the first to meet another data set. */
  readonly onColdStart?: (coldStartMs: number) => void;
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
  readonly #options: Required<RedisTagStoreOptions>;
  readonly #buckets: number;
  /** When the cold start of each marker ends, by our clock. */
  readonly #coldStartUntilMs = new Map<number, number>();
  readonly #clock: StoreClock;

  constructor(options: RedisTagStoreOptions) {
    this.#options = {
      scripts: buildTagScripts(),
      replicas: 0,
      keyPrefix: 'shopward',
      coldStartMs: () => options.times.coldStartMs,
      onColdStart: () => {},
      now: () => performance.now(),
      ...options,
    };
    this.#buckets = options.redis.kind === 'cluster' ? clusterBuckets : 1;
    this.#clock = new StoreClock(this.#options.now);
  }

  async lookUp(key: ResourceKey, variant: string | null): Promise<LookUp> {
    const reply = await this.#run('lookUp', key, [variant ?? '']);
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
    const args = [
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
    ];
    const [, , , tag = '', unchanged, replaced] = await this.#run('endRead', key, args, read.isOfStranger);
    return tag === '' ? null : { tag, isUnchanged: unchanged === '1', isReplaced: replaced === '1' };
  }

  async claim(key: ResourceKey, { token, tags, isOfStranger, isOpen }: Claim): Promise<ClaimAnswer> {
    const { redis, scripts, times, replicas, now } = this.#options;
    const bucket = this.#bucketOf(key);
    const kind = isOpen === true ? 'o' : tags === null ? '0' : '1';
    const mayHaveTurn = isOfStranger === true ? '0' : '1';
    const args = [token, times.sendByMs * 1000, kind, mayHaveTurn, ...(tags ?? [])];
    const all = [...this.#timeArgs(isOfStranger), ...args];
    const askedAt = now();
    const keys = this.#keys(bucket, key);
    const { reply, isConfirmed } = await runConfirmed(redis, scripts.claim, keys, all, replicas);
    const answer = readClaim(this.#hear(bucket, reply, askedAt));
    return answer.kind === 'granted' && !isConfirmed ? { kind: 'not-replicated' } : answer;
  }

  async markSent(key: ResourceKey, token: string): Promise<boolean> {
    const args = [token, this.#options.times.sendByMs * 1000];
    const [, , , isOwn] = await this.#run('markSent', key, args);
    return isOwn === '1';
  }

  async end(key: ResourceKey, write: ClaimEnd): Promise<string | null> {
    const { token, tagged, outcome, newTag, shopTag, isOfStranger, isOpen } = write;
    const args = [token, isOpen === true ? 'o' : tagged ? '1' : '0', outcome, newTag ?? '', shopTag ?? ''];
    const [, , , tag] = await this.#run('end', key, args, isOfStranger);
    return tag || null;
  }

  async warmUp(): Promise<number> {
    const nowhere = '-' as ResourceKey;
    const buckets = Array.from({ length: this.#buckets }, (_, bucket) => bucket);
    const left = buckets.map(async (bucket) => {
      const [, now, coldStartUntil] = await this.#run('lookUp', nowhere, [''], false, bucket);
      return (Number(coldStartUntil) - Number(now)) / 1000;
    });
    return Math.max(0, ...(await Promise.all(left)));
  }

  coldStartLeftMs(): number {
    let until = 0;
    for (const each of this.#coldStartUntilMs.values()) until = Math.max(until, each);
    return Math.max(0, until - this.#options.now());
  }

  async close(): Promise<void> {}

  /** First arguments of every script. */
  #timeArgs(isOfStranger = false): number[] {
    const { times, coldStartMs } = this.#options;
    const expiryMs = isOfStranger ? times.strangersExpiryMs : times.recordExpiryMs;
    return [times.leaseMs * 1000, coldStartMs() * 1000, times.longestReadMs * 1000, expiryMs];
  }

  async #run(
    name: keyof TagScripts,
    key: ResourceKey,
    args: readonly RedisArgument[],
    isOfStranger = false,
    bucket = this.#bucketOf(key),
  ): Promise<Reply> {
    const { redis, scripts, now } = this.#options;
    const all = [...this.#timeArgs(isOfStranger), ...args];
    const askedAt = now();
    return this.#hear(bucket, await redis.runScript(scripts[name], this.#keys(bucket, key), all), askedAt);
  }

  /** Marker and record share a slot. */
  #keys(bucket: number, key: ResourceKey): [string, string] {
    const slot = slotOf(this.#options.keyPrefix, 'tags', bucket);
    return [`${slot}:epoch`, `${slot}:${key}`];
  }

  #bucketOf(key: ResourceKey): number {
    return bucketOf(key, this.#buckets);
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
    this.#coldStartUntilMs.set(bucket, this.#options.now() + coldStartMs);
    if (isNews) this.#options.onColdStart(coldStartMs);
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
