import { isolateLate, isolated } from '../lib/faults.ts';
import { type Client, type ClientOptions, findConnectError } from './clients.ts';
import {
  type Cause,
  type RedisFaultWord,
  RedisUnavailable,
  causeOf,
  toRedisFault,
  withinDeadline,
} from './faults.ts';
import type { RedisStatus, ServerFacts } from './redis.ts';
import { type Health, type HealthLine, StoreHealth } from './store-health.ts';
import { Cluster } from 'ioredis';

export interface WatchOptions {
  /** Replicas that have to confirm claims; 0: they are not watched. Default 0. */
  readonly replicas?: number;
  /** Called for each log line about the store or its replicas. */
  readonly onLine?: (about: 'store' | 'replicas', line: HealthLine) => void;
  /** Called after each INFO; `before` is undefined at the first. */
  readonly onFacts?: (facts: ServerFacts, before: ServerFacts | undefined) => void;
  /** Clock in milliseconds since the epoch. Default `Date.now`. */
  readonly now?: () => number;
}

const tickMs = 1_000;
/** INFO is asked at every fourth tick. */
const ticksPerInfo = 4;

/**
 * Watches the servers of a client: whether they answer, their memory and eviction policy, how claims end. Calls report their
 * outcome; the rest is asked for every few seconds.
 */
export class RedisWatch {
  readonly #client: Client;
  readonly #clientOptions: ClientOptions;
  readonly #options: WatchOptions;
  readonly #now: () => number;
  readonly #health: StoreHealth;
  readonly #replication: StoreHealth;
  readonly #claims = { made: 0, totalMs: 0, unconfirmed: 0, lastConfirmed: undefined as number | undefined };
  #lastConfirmedAt = Number.NEGATIVE_INFINITY;
  #facts: ServerFacts | undefined;
  /** Why it must not be used although it answers. */
  #refusal: RedisFaultWord | undefined;
  #policyChecked: Promise<void> = Promise.resolve();
  readonly #whenReached = Promise.withResolvers<void>();
  readonly #timer: NodeJS.Timeout;
  #ticks = 0;

  constructor(client: Client, clientOptions: ClientOptions, options: WatchOptions) {
    const { onLine, now = Date.now } = options;
    this.#client = client;
    this.#clientOptions = clientOptions;
    this.#options = options;
    this.#now = now;
    this.#health = new StoreHealth(now(), (line) => onLine?.('store', line));
    this.#replication = new StoreHealth(now(), (line) => onLine?.('replicas', line));
    const ready = isolated(() => {
      this.#whenReached.resolve();
      this.#policyChecked = this.#checkPolicy();
      this.#policyChecked.catch(() => {});
    });
    const failed = isolated((error: unknown) => this.#health.fail(causeOf(error), this.#now()));
    const closed = isolated(() => this.#health.fail({ word: 'connection', text: undefined }, this.#now()));
    client.on('ready', ready).on('error', failed).on('close', closed);
    // Emitted by a Cluster: why one of its nodes cannot be reached.
    client.on('node error', failed);
    const tick = isolated(() => this.#onTick());
    this.#timer = setInterval(tick, tickMs).unref();
  }

  state(): Health {
    return this.#health.state;
  }

  status(): RedisStatus {
    return {
      replication: (this.#options.replicas ?? 0) > 0 ? this.#replication.state : undefined,
      claims: this.#claims,
      facts: this.#facts,
    };
  }

  async ready(withinMs: number): Promise<boolean> {
    try {
      await withinDeadline(() => this.#whenReached.promise, withinMs);
      await withinDeadline(() => this.#policyChecked, withinMs);
    } catch (error) {
      if (error instanceof RedisUnavailable && error.word === 'evicting') throw error;
      return false;
    }
    return true;
  }

  /** Why no call may be made now; undefined: calls may be made. */
  refusal(): RedisFaultWord | undefined {
    return this.#health.state.status === 'closed' ? 'closed' : this.#refusal;
  }

  readonly succeed = <T>(reply: T): T => {
    this.#health.succeed(this.#now());
    return reply;
  };

  readonly fail = (error: unknown): never => {
    const fault = toRedisFault(error);
    if (fault.word === 'error') this.#health.succeed(this.#now());
    else this.#health.fail(causeOf(fault), this.#now());
    throw fault;
  };

  /** Counts claims of one call: how long they took, and how many of the replicas that were asked confirmed them. */
  countClaims(count: number, ms: number, asked: number, confirmed: number): void {
    const counts = this.#claims;
    counts.made += count;
    counts.totalMs += ms * count;
    if (asked === 0) return;
    counts.lastConfirmed = confirmed;
    this.#lastConfirmedAt = this.#now();
    if (confirmed >= asked) this.#replication.succeed(this.#now());
    else {
      counts.unconfirmed += count;
      this.#replication.fail(lackOf(confirmed, asked), this.#now());
    }
  }

  close(): void {
    clearInterval(this.#timer);
    this.#health.close(this.#now());
    this.#replication.close(this.#now());
  }

  /** Learns what traffic does not tell: whether Redis answers, its current policy, how full it is. */
  #onTick(): void {
    this.#ticks += 1;
    const now = this.#now();
    this.#health.tick(now);
    this.#replication.tick(now);
    if (this.#ticks % ticksPerInfo !== 0) return;
    this.#learnFacts().catch(() => {});
    isolateLate(this.#nameCause());
    const { replicas = 0 } = this.#options;
    const connected = this.#facts?.connectedReplicas;
    if (replicas === 0 || connected === undefined || now - this.#lastConfirmedAt < tickMs * ticksPerInfo)
      return;
    if (connected >= replicas) this.#replication.succeed(now);
    else this.#replication.fail(lackOf(connected, replicas), now);
  }

  /** Finds out why Redis is away, if no error has said so. */
  async #nameCause(): Promise<void> {
    const { status, cause } = this.#health.state;
    if (status !== 'away' || cause?.text !== undefined || cause?.word !== 'connection') return;
    const error = await findConnectError(this.#clientOptions);
    if (error !== undefined) this.#health.fail(causeOf(error), this.#now());
  }

  /** Runs on each new connection, since it may be to another server. */
  async #checkPolicy(): Promise<void> {
    for (;;) {
      try {
        await this.#learnFacts();
        const { evictingPolicy } = this.#facts ?? {};
        if (evictingPolicy === undefined) return;
        const cause = new Error(`maxmemory-policy is ${evictingPolicy}; it has to be noeviction`);
        throw new RedisUnavailable('evicting', cause);
      } catch (error) {
        // It must not be used before its policy is known: a server that was too slow is asked again.
        const isSlow = toRedisFault(error).word === 'timeout' && this.#client.status === 'ready';
        if (!isSlow || this.#health.state.status === 'closed') throw error;
      }
    }
  }

  async #learnFacts(): Promise<void> {
    const asked = () => askServerFacts(this.#client);
    const facts = await withinDeadline(asked, this.#clientOptions.timeoutMs).catch((error: unknown) => {
      const fault = toRedisFault(error);
      // INFO is forbidden or renamed: whether it evicts records cannot be known.
      if (fault.word === 'noperm' || fault.word === 'error') this.#refusal = fault.word;
      this.#health.fail(causeOf(error), this.#now());
      throw fault;
    });
    const before = this.#facts;
    this.#facts = facts;
    const { evictingPolicy } = facts;
    this.#refusal = evictingPolicy === undefined ? undefined : 'evicting';
    if (evictingPolicy === undefined) this.#health.succeed(this.#now());
    else this.#health.fail({ word: 'evicting', text: `maxmemory-policy ${evictingPolicy}` }, this.#now());
    this.#options.onFacts?.(facts, before);
  }
}

function lackOf(confirmed: number, asked: number): Cause {
  return { word: 'noreplicas', text: `${confirmed} of ${asked} replicas confirm` };
}

const maxLagSeconds = 3;

/** Asks every primary by INFO, since CONFIG is often forbidden. */
async function askServerFacts(client: Client): Promise<ServerFacts> {
  const nodes = client instanceof Cluster ? client.nodes('master') : [client];
  const askedMs = Date.now();
  const infos = await Promise.all(nodes.map((node) => node.info('default')));
  return readServerFacts(infos, askedMs);
}

/** Exported for its tests. */
export function readServerFacts(infos: readonly string[], askedMs: number): ServerFacts {
  const all = (name: string) => infos.map((info) => field(info, name) ?? '');
  const memories = infos.map((info) => ({
    usedBytes: Number(field(info, 'used_memory') ?? 0),
    maxBytes: Number(field(info, 'maxmemory') ?? 0),
  }));
  return {
    evictingPolicy: all('maxmemory_policy').find((policy) => policy !== '' && policy !== 'noeviction'),
    memory: memories.toSorted((a, b) => shareOf(b) - shareOf(a))[0] ?? { usedBytes: 0, maxBytes: 0 },
    connectedReplicas: Math.min(...infos.map(countReplicas)),
    timeMs: Number(all('server_time_usec')[0]) / 1000 || undefined,
    askedMs,
    replicationIds: all('master_replid').toSorted().join(' '),
  };
}

/** In `slave0:ip=…,port=…,state=online,offset=…,lag=1` the lag is seconds since its last acknowledgement, sent each second. */
function countReplicas(info: string): number {
  return info.split('\n').filter((line) => {
    const lag = /^slave\d{1,4}:.{0,200},state=online,.{0,100}lag=(\d{1,9})/.exec(line)?.[1];
    return lag !== undefined && Number(lag) <= maxLagSeconds;
  }).length;
}

/** How full a node is, from 0 to 1; without `maxmemory` as a share of a terabyte, so that nodes can still be compared. */
function shareOf({ usedBytes, maxBytes }: ServerFacts['memory']): number {
  return usedBytes / (maxBytes || 2 ** 40);
}

function field(info: string, name: string): string | undefined {
  return info.split(`\n${name}:`, 2)[1]?.split('\n', 1)[0]?.trimEnd();
}
