import { EndOfTick } from '../lib/end-of-tick.ts';
import { isolateLate } from '../lib/faults.ts';
import { RedisUnavailable } from '../redis/faults.ts';
import { recordForms } from '../redis/membership.ts';
import { bucketOf, type RedisRecords, slotOf } from '../redis/redis.ts';
import { ServerClock } from '../redis/server-clock.ts';
import { buildTagScripts, type TagScripts } from './lua.ts';
import {
  type Claim,
  type ClaimAnswer,
  type ClaimEnd,
  guardedCollectionOf,
  type LookUp,
  type ReadEnd,
  type ReadStamp,
  type ReadTag,
  type ResourceKey,
  type TagStore,
} from './tag-store.ts';
import type { EntityTagTimes } from './times.ts';

interface RedisTagStoreOptions extends RedisRecords {
  readonly times: Pick<EntityTagTimes, 'leaseMs' | 'longestReadMs' | 'recordExpiryMs' | 'anonymousExpiryMs'>;
  /** Milliseconds; asked at each call, since replicas with a longer lease may join. Default `times.leaseMs`. */
  readonly coldStartMs?: () => number;
  /** The form of records in force. Default `recordForms.newest`. */
  readonly form?: () => number;
  /** Called when a cold start begins, and when its end moves later: any script may be the first to find another data set. */
  readonly onColdStart?: (coldStartMs: number) => void;
  /** Milliseconds, monotonic. Default `performance.now`. */
  readonly now?: () => number;
  /** Default `buildTagScripts()`. */
  readonly scripts?: TagScripts;
}

/** Number of markers in a Cluster: enough to spread over the nodes, few enough to warm up at the start. */
const clusterBuckets = 64;

/** Maximum number of claims, or other operations, in one script: Redis does nothing else while it runs. */
const maxGathered = 64;

/** Operations and answers have the form that `lua.ts` describes. */
const lookUpOperation = 'lookUp\n0\n';
/** The answer for an operation whose record is broken. */
const broken = '!';

/** Redis granted the claim, but too few replicas have it. */
const notReplicated = 'not-replicated';

type Answer = readonly string[];

/** Tags shared by every replica, in a Redis of one node, behind Sentinels, or in a Cluster. */
export class RedisTagStore implements TagStore {
  readonly #options: Required<RedisTagStoreOptions>;
  readonly #buckets: number;
  /** When the cold start of each marker ends, by this process's clock. */
  readonly #coldStartUntilMs = new Map<number, number>();
  readonly #clock: StoreClock;
  /** By bucket, for claims and for all else. */
  readonly #gathered = { claims: new Map<number, Gathered>(), operations: new Map<number, Gathered>() };

  constructor(options: RedisTagStoreOptions) {
    this.#options = {
      scripts: buildTagScripts(),
      replicas: 0,
      keyPrefix: 'shopward',
      coldStartMs: () => options.times.leaseMs,
      form: () => recordForms.newest,
      onColdStart: () => {},
      now: () => performance.now(),
      ...options,
    };
    this.#buckets = options.redis.kind === 'cluster' ? clusterBuckets : 1;
    this.#clock = new StoreClock(this.#options.now);
  }

  async lookUp(key: ResourceKey): Promise<LookUp> {
    const [epoch = '', now = '', why = '', tag = ''] = await this.#ask(key, lookUpOperation);
    return {
      stamp: why === 'cold-start' || why === 'indeterminate' ? null : { epoch, startedAt: Number(now) },
      tag: tag === '' ? null : tag,
      unsettled: why === 'cold-start' || why === 'indeterminate' || why === 'lease' ? why : null,
    };
  }

  readStampAt(key: ResourceKey, startedAt: number): ReadStamp | null {
    return this.#clock.readStampAt(this.#bucketOf(key), startedAt);
  }

  hasHeard(key: ResourceKey): boolean {
    return this.#clock.hasHeard(this.#bucketOf(key));
  }

  async endRead(key: ResourceKey, read: ReadEnd): Promise<ReadTag | null> {
    const { stamp, isAnonymous = false } = read;
    const expiryMs = this.#expiryMs(isAnonymous);
    const found = `${read.variant}\n${read.fingerprint ?? ''}\n${read.newTag}\n${read.shopTag ?? ''}`;
    const flags = `${Number(read.isOfCollection)}\n${Number(!isAnonymous)}`;
    const operation = `endRead\n${expiryMs}\n${stamp.epoch}\n${stamp.startedAt}\n${found}\n${flags}\n`;
    const [tag = '', recorded = ''] = await this.#ask(key, operation);
    return tag === '' ? null : { tag, fingerprint: read.fingerprint ?? (recorded || null) };
  }

  async claim(key: ResourceKey, wanted: Claim): Promise<ClaimAnswer> {
    const { token, tags, isAnonymous, isOpen, isWhole } = wanted;
    const untagged = isWhole === true ? 'w' : '0';
    const kind = isOpen === true ? 'o' : tags === null ? untagged : '1';
    const named = (tags ?? []).map((tag) => `${tag},`).join('');
    const expiryMs = this.#expiryMs(isAnonymous);
    const operation = `claim\n${expiryMs}\n${token}\n${kind}\n${Number(isAnonymous !== true)}\n${named}\n`;
    return readClaim(await this.#ask(key, operation, true));
  }

  async end(key: ResourceKey, write: ClaimEnd): Promise<string | null> {
    const { token, tagged, outcome, newTag, shopTag, isAnonymous, isOpen } = write;
    // A write with `isOpen` leaves a mark that only reads in progress need. Anyone can make one for any id, so keep it briefly.
    const expiryMs = isOpen ? this.#options.times.longestReadMs * 2 : this.#expiryMs(isAnonymous);
    const kind = isOpen === true ? 'o' : tagged ? '1' : '0';
    const tags = `${newTag ?? ''}\n${shopTag ?? ''}`;
    const operation = `end\n${expiryMs}\n${token}\n${kind}\n${outcome}\n${tags}\n`;
    const [tag] = await this.#ask(key, operation);
    return tag || null;
  }

  async warmUp(): Promise<number> {
    const nowhere = '-' as ResourceKey;
    const buckets = Array.from({ length: this.#buckets }, (_, bucket) => bucket);
    const left = buckets.map(async (bucket) => {
      await this.#ask(nowhere, lookUpOperation, false, bucket);
    });
    await Promise.all(left);
    return this.coldStartLeftMs();
  }

  coldStartLeftMs(): number {
    let until = 0;
    for (const each of this.#coldStartUntilMs.values()) until = Math.max(until, each);
    return Math.max(0, until - this.#options.now());
  }

  #expiryMs(isAnonymous = false): number {
    return this.#options.times[isAnonymous ? 'anonymousExpiryMs' : 'recordExpiryMs'];
  }

  #ask(key: ResourceKey, operation: string, isClaim = false, bucket = this.#bucketOf(key)): Promise<Answer> {
    const byBucket = isClaim ? this.#gathered.claims : this.#gathered.operations;
    let gathered = byBucket.get(bucket);
    if (gathered === undefined) {
      gathered = new Gathered((keys, operations) => this.#run(bucket, isClaim, keys, operations));
      byBucket.set(bucket, gathered);
    }
    return gathered.ask(key, operation);
  }

  async #run(
    bucket: number,
    isClaim: boolean,
    resources: readonly ResourceKey[],
    operations: readonly string[],
  ): Promise<readonly string[]> {
    const { redis, scripts, replicas, now, times, coldStartMs, form } = this.#options;
    const askedAt = now();
    const keys = this.#keys(bucket, resources);
    const micros = [times.leaseMs * 1000, coldStartMs() * 1000, times.longestReadMs * 1000];
    const args = [...micros, form(), ...operations];
    if (!isClaim) return this.#hear(bucket, await redis.runScript(scripts.operations, keys, args), askedAt);
    const { reply, replicas: confirmed } = await redis.runClaim(scripts.claims, keys, args, replicas);
    const answers = this.#hear(bucket, reply, askedAt);
    if (confirmed >= replicas) return answers;
    // One confirmation covers all claims of the script, which were granted before it.
    return answers.map((answer) => (answer.startsWith('granted') ? notReplicated : answer));
  }

  /** Marker and records share a slot; so do a guarded collection and its members. */
  #keys(bucket: number, keys: readonly ResourceKey[]): string[] {
    const slot = slotOf(this.#options.keyPrefix, 'tags', bucket);
    return [`${slot}:epoch`, ...keys.map((key) => `${slot}:${key}`)];
  }

  #bucketOf(key: ResourceKey): number {
    return bucketOf(guardedCollectionOf(key) ?? key, this.#buckets);
  }

  /** The answers to a script's operations. */
  #hear(bucket: number, reply: unknown, askedAt: number): readonly string[] {
    if (typeof reply !== 'string') throw new RedisUnavailable('error');
    const [epoch = '', now, coldStartUntil, ...answers] = reply.split('\n');
    this.#clock.hear(bucket, epoch, Number(now), askedAt);
    const coldStartMs = (Number(coldStartUntil) - Number(now)) / 1000;
    if (coldStartMs > 0) this.#startCold(bucket, coldStartMs);
    else this.#coldStartUntilMs.delete(bucket);
    return answers;
  }

  #startCold(bucket: number, coldStartMs: number): void {
    const leftMs = this.coldStartLeftMs();
    const isNews = leftMs === 0 || coldStartMs > leftMs + sameEndMs;
    this.#coldStartUntilMs.set(bucket, this.#options.now() + coldStartMs);
    if (isNews) this.#options.onColdStart(coldStartMs);
  }
}

/** Cold starts whose ends differ by less are one, seen over connections of different speed. */
const sameEndMs = 1_000;

interface PendingOperation {
  readonly key: ResourceKey;
  readonly operation: string;
  resolve(answer: Answer): void;
  reject(fault: unknown): void;
}

/** Must not throw; the promise may reject. */
type RunOperations = (
  keys: readonly ResourceKey[],
  operations: readonly string[],
) => Promise<readonly string[]>;

/** The operations of one slot in one tick of the event loop. They are sent as one script at its end. */
class Gathered {
  readonly #run: RunOperations;
  #pending: PendingOperation[] = [];

  constructor(run: RunOperations) {
    this.#run = run;
  }

  ask(key: ResourceKey, operation: string): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const count = this.#pending.push({ key, operation, resolve, reject });
      if (count === 1) endOfTick.add(this);
      else if (count === maxGathered) this.send();
    });
  }

  send(): void {
    const pending = this.#pending;
    // `ask` has sent them already, because a script was full.
    if (pending.length === 0) return;
    this.#pending = [];
    const keys = pending.map(({ key }) => key);
    const operations = pending.map(({ operation }) => operation);
    const sent = this.#run(keys, operations).then(
      (answers) => {
        for (const [i, { resolve, reject }] of pending.entries()) {
          const answer = answers[i] ?? broken;
          if (answer !== broken) resolve(answer.split('\t'));
          // The script has run, so a broken claim cannot take effect later: it may be given back from now on.
          else reject(new RedisUnavailable('error', undefined, performance.now()));
        }
      },
      (fault: unknown) => {
        for (const { reject } of pending) reject(fault);
      },
    );
    isolateLate(sent);
  }
}

const endOfTick = new EndOfTick<Gathered>(
  (gathered) => gathered.send(),
  () => {},
);

function readClaim([kind, micros, shopTag = '']: Answer): ClaimAnswer {
  const remainingMs = Number(micros) / 1000;
  switch (kind) {
    case 'granted':
      return { kind, shopTag: shopTag === '' ? null : shopTag };
    case 'not-current':
    case 'not-replicated':
      return { kind };
    case 'busy':
    case 'indeterminate':
    case 'cold-start':
      return { kind, remainingMs };
    default:
      throw new RedisUnavailable('error');
  }
}

/** Milliseconds above which the allowance for drift would cost more than asking the store. */
const maxDistanceMs = 60_000;
/** For this long the allowance for drift is a tenth of a millisecond: less than a client takes from an answer to its next request. */
const recentMs = 100;

/**
 * What this process knows of the store's clock, per marker. From the store's time in an answer follows a lower bound of that
 * clock for any other moment, earlier or later, however long the process was stopped in between. Exported for its tests.
 */
export class StoreClock {
  readonly #nowMs: () => number;
  readonly #markers = new Map<number, { readonly epoch: string; readonly clock: ServerClock }>();

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** `askedAtMs`: the time before the question left. */
  hear(bucket: number, epoch: string, storeMicros: number, askedAtMs: number): void {
    let marker = this.#markers.get(bucket);
    if (marker?.epoch !== epoch) {
      marker = { epoch, clock: new ServerClock() };
      this.#markers.set(bucket, marker);
    }
    marker.clock.hear(storeMicros, askedAtMs, this.#nowMs());
  }

  readStampAt(bucket: number, startedAtMs: number): ReadStamp | null {
    const { epoch, clock } = this.#markers.get(bucket) ?? {};
    if (epoch === undefined || !clock?.wasHeard(startedAtMs, maxDistanceMs)) return null;
    return { epoch, startedAt: clock.atLeast(startedAtMs) };
  }

  /** Whether the store was heard so recently that a bound is as good as its own answer. */
  hasHeard(bucket: number): boolean {
    return this.#markers.get(bucket)?.clock.wasHeard(this.#nowMs(), recentMs) === true;
  }
}
