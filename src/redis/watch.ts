import { Cluster } from 'ioredis';
import { isolated, isolateLate } from '../lib/faults.ts';
import { type Client, type ClientOptions, findConnectError } from './clients.ts';
import {
  type Cause,
  causeOf,
  type RedisFaultWord,
  RedisUnavailable,
  toRedisFault,
  withinDeadline,
} from './faults.ts';
import type { RedisStatus, ServerFacts } from './redis.ts';
import { askServerFacts, findMissingRights } from './server-facts.ts';
import { type Health, type HealthLine, StoreHealth } from './store-health.ts';

export interface WatchOptions {
  /** Rights are looked for under it. Default `shopward`. */
  readonly prefix?: string;
  /** Replicas that claims ask for (`runScriptAndWait`); 0: their state is not watched. Default 0. */
  readonly replicas?: number;
  /** One log line each, of the store or of its replicas. */
  readonly onLine?: (about: 'store' | 'replicas', line: HealthLine) => void;
  /** A connection was made, or what INFO tells has changed; `before` is undefined for the first word. */
  readonly onFacts?: (facts: ServerFacts, before: ServerFacts | undefined) => void;
  /** Milliseconds since the epoch. Default `Date.now`. */
  readonly now?: () => number;
}

/** Milliseconds. */
const beatMs = 1_000;
/** INFO is asked every so many beats. */
const beatsAQuestion = 4;

/**
 * What is known of the servers of a client: whether they answer, what they may be used for, how claims fare. Calls
 * say how they ended; what no traffic would tell is asked for.
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
  /** Why it may not be used although it answers. */
  #refusal: RedisFaultWord | undefined;
  #missingRights: readonly string[] = [];
  #policyChecked: Promise<void> = Promise.resolve();
  readonly #whenReached = Promise.withResolvers<void>();
  readonly #beats: NodeJS.Timeout;
  #beat = 0;

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
    // Of a Cluster: why one of its nodes cannot be reached.
    client.on('node error', failed);
    const beat = isolated(() => this.#onBeat());
    this.#beats = setInterval(beat, beatMs).unref();
  }

  state(): Health {
    return this.#health.state;
  }

  status(): RedisStatus {
    return {
      replication: (this.#options.replicas ?? 0) > 0 ? this.#replication.state : undefined,
      claims: this.#claims,
      facts: this.#facts,
      missingRights: this.#missingRights,
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

  /** Why no call may be made at the moment. */
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

  /** How long a claim took, and how many of the replicas that were asked have it. */
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
    clearInterval(this.#beats);
    this.#health.close(this.#now());
    this.#replication.close(this.#now());
  }

  /** What no traffic would tell: that Redis answers, which policy it has by now, how full it is. */
  #onBeat(): void {
    this.#beat += 1;
    const now = this.#now();
    this.#health.tick(now);
    this.#replication.tick(now);
    if (this.#beat % beatsAQuestion !== 0) return;
    this.#learnFacts().catch(() => {});
    isolateLate(this.#nameCause());
    const { replicas = 0 } = this.#options;
    const connected = this.#facts?.connectedReplicas;
    if (replicas === 0 || connected === undefined || now - this.#lastConfirmedAt < beatMs * beatsAQuestion)
      return;
    if (connected >= replicas) this.#replication.succeed(now);
    else this.#replication.fail(lackOf(connected, replicas), now);
  }

  /** Where nothing has said yet why it is away. */
  async #nameCause(): Promise<void> {
    const { status, cause } = this.#health.state;
    if (status !== 'away' || cause?.text !== undefined || cause?.word !== 'connection') return;
    const error = await findConnectError(this.#clientOptions);
    if (error !== undefined) this.#health.fail(causeOf(error), this.#now());
  }

  /** On each new connection: it may be another server. */
  async #checkPolicy(): Promise<void> {
    for (;;) {
      try {
        await this.#learnFacts();
        break;
      } catch (error) {
        // Until it has answered, nobody knows whether it may be used: a server that was too slow is asked again.
        const isSlow = toRedisFault(error).word === 'timeout' && this.#client.status === 'ready';
        if (!isSlow || this.#health.state.status === 'closed') throw error;
      }
    }
    const { evictingPolicy } = this.#facts ?? {};
    if (evictingPolicy !== undefined) throw new RedisUnavailable('evicting', policyFault(evictingPolicy));
    const server = this.#client instanceof Cluster ? this.#client.nodes('master')[0] : this.#client;
    if (server === undefined) return;
    const { prefix = 'shopward' } = this.#options;
    this.#missingRights = await withinDeadline(
      () => findMissingRights(server, prefix),
      this.#clientOptions.timeoutMs,
    );
  }

  async #learnFacts(): Promise<void> {
    const asked = () => askServerFacts(this.#client);
    const facts = await withinDeadline(asked, this.#clientOptions.timeoutMs).catch((error: unknown) => {
      const fault = toRedisFault(error);
      // Forbidden or renamed: nobody can know whether it throws records away.
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

function policyFault(policy: string): Error {
  return new Error(`maxmemory-policy is ${policy}; it has to be noeviction`);
}
