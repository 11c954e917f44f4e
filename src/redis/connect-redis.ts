import { Cluster } from 'ioredis';
import { type ClaimReply, Claims } from './claims.ts';
import {
  type Client,
  type ClientOptions,
  closeClient,
  createClient,
  findConnectError,
  type RedisTlsOptions,
  Subscriptions,
} from './clients.ts';
import {
  type Cause,
  causeOf,
  isUnknownScript,
  type RedisFaultWord,
  RedisUnavailable,
  toRedisFault,
  withinDeadline,
} from './faults.ts';
import type { Redis, RedisArgument, RedisScript, RedisStatus, ServerFacts } from './redis.ts';
import { parseRedisUrl, type RedisAddress } from './redis-url.ts';
import { askServerFacts, findMissingRights } from './server-facts.ts';
import { type Health, type HealthLine, StoreHealth } from './store-health.ts';

export interface ConnectRedisOptions {
  /** See `parseRedisUrl`; what it has parsed already will do. */
  readonly url: string | RedisAddress;
  /** Deadline of every call. Default 500. */
  readonly timeoutMs?: number;
  readonly tls?: RedisTlsOptions;
  readonly sentinelPassword?: string;
  /** Begins all keys; rights are looked for under it. Default `shopward`. */
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

/** Connects in the background and keeps at it; throws only when the URL is malformed. */
export function connectRedis(options: ConnectRedisOptions): Redis {
  return new ConnectedRedis(options);
}

interface ClaimPath {
  readonly claims: Claims;
  /** Resolves when its connections were made for the first time; undefined: the calls may be made at once. */
  readonly opened: Promise<void> | undefined;
}

class ConnectedRedis implements Redis {
  readonly kind: Redis['kind'];
  readonly #clientOptions: ClientOptions;
  readonly #client: Client;
  readonly #subscriptions: Subscriptions;
  readonly #timeoutMs: number;
  readonly #options: ConnectRedisOptions;
  readonly #now: () => number;
  readonly #main: ClaimPath;
  /** For claims that replicas have to confirm. */
  #confirmed: (ClaimPath & { readonly client: Client }) | undefined;
  readonly #health: StoreHealth;
  readonly #replication: StoreHealth;
  readonly #claimCounts = {
    made: 0,
    totalMs: 0,
    unconfirmed: 0,
    lastConfirmed: undefined as number | undefined,
  };
  #lastConfirmedAt = Number.NEGATIVE_INFINITY;
  #facts: ServerFacts | undefined;
  /** Why it may not be used although it answers. */
  #refusal: RedisFaultWord | undefined;
  #missingRights: readonly string[] = [];
  #isGathering = false;
  #policyChecked: Promise<void> = Promise.resolve();
  readonly #whenReached = Promise.withResolvers<void>();
  readonly #beats: NodeJS.Timeout;
  #beat = 0;

  constructor(options: ConnectRedisOptions) {
    const { url, timeoutMs = 500, tls, sentinelPassword, onLine, now = Date.now } = options;
    const address = typeof url === 'string' ? parseRedisUrl(url) : url;
    this.kind = address.kind;
    this.#options = options;
    this.#timeoutMs = timeoutMs;
    this.#now = now;
    this.#health = new StoreHealth(now(), (line) => onLine?.('store', line));
    this.#replication = new StoreHealth(now(), (line) => onLine?.('replicas', line));
    this.#clientOptions = { address, timeoutMs, tls, sentinelPassword };
    this.#client = createClient(this.#clientOptions);
    this.#main = { claims: new Claims(this.#client), opened: undefined };
    this.#watch(this.#client);
    this.#subscriptions = new Subscriptions(this.#clientOptions);
    this.#beats = setInterval(() => this.#onBeat(), beatMs).unref();
  }

  command(name: string, ...args: readonly RedisArgument[]): Promise<unknown> {
    return this.#call(() => {
      this.#gatherWrites();
      return this.#client.call(name, ...args);
    });
  }

  runScript(script: RedisScript, keys: readonly string[], args: readonly RedisArgument[]): Promise<unknown> {
    if (script.isClaim) {
      this.#gatherWrites();
      return this.#claim(this.#main, script, keys, args, 0).then(({ reply }) => reply);
    }
    const deadlineMs = performance.now() + this.#timeoutMs;
    return this.#call(() => {
      const client = this.#client;
      this.#gatherWrites();
      return client.evalsha(script.sha1, keys.length, ...keys, ...args).catch((error: unknown) => {
        // Whose time is over has been answered.
        if (!isUnknownScript(error) || performance.now() >= deadlineMs) throw error;
        return client.eval(script.lua, keys.length, ...keys, ...args);
      });
    });
  }

  runScriptAndWait(
    script: RedisScript,
    keys: readonly string[],
    args: readonly RedisArgument[],
    replicas: number,
  ): Promise<ClaimReply> {
    if (!script.isClaim)
      throw new TypeError(`${script.name} is no claim: nothing would end it when it is late`);
    this.#confirmed ??= this.#openConfirmed();
    return this.#claim(this.#confirmed, script, keys, args, replicas);
  }

  /** Tells with the fault until when a claim without a reply may still take effect. */
  async #claim(
    { claims, opened }: ClaimPath,
    script: RedisScript,
    keys: readonly string[],
    args: readonly RedisArgument[],
    replicas: number,
  ): Promise<ClaimReply> {
    const startedMs = performance.now();
    const deadlineMs = startedMs + this.#timeoutMs;
    const claim = { script, keys, args, replicas, startedMs, deadlineMs, mayHold: false };
    try {
      const reply = await this.#call(async () => {
        if (this.#client.status !== 'ready') throw new RedisUnavailable('connection');
        await opened;
        return claims.send(claim);
      });
      this.#countClaim(performance.now() - startedMs, replicas, reply.replicas);
      return reply;
    } catch (fault) {
      if (!claim.mayHold || !(fault instanceof RedisUnavailable)) throw fault;
      throw new RedisUnavailable(fault.word, fault.cause, deadlineMs);
    }
  }

  subscribe(channel: string, onMessage: (message: string) => void, onReconnect?: () => void): () => void {
    return this.#subscriptions.subscribe(channel, onMessage, onReconnect);
  }

  state(): Health {
    return this.#health.state;
  }

  status(): RedisStatus {
    return {
      replication: (this.#options.replicas ?? 0) > 0 ? this.#replication.state : undefined,
      claims: this.#claimCounts,
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

  async close(): Promise<void> {
    clearInterval(this.#beats);
    this.#health.close(this.#now());
    this.#replication.close(this.#now());
    this.#subscriptions.close();
    for (const client of [this.#client, this.#confirmed?.client])
      if (client !== undefined) closeClient(client);
  }

  /**
   * What one turn of the event loop asks leaves in one write, and is answered in one: a write of its own would be half
   * of what a call costs. The connections of a Cluster are its own business.
   */
  #gatherWrites(): void {
    if (this.#isGathering || this.#client instanceof Cluster) return;
    const { stream } = this.#client;
    // Undefined before the first connection.
    if (stream === undefined) return;
    this.#isGathering = true;
    stream.cork();
    setImmediate(() => {
      this.#isGathering = false;
      stream.uncork();
    });
  }

  #call<T>(call: () => Promise<T>): Promise<T> {
    if (this.#health.state.status === 'closed') return Promise.reject(new RedisUnavailable('closed'));
    if (this.#refusal !== undefined) return Promise.reject(new RedisUnavailable(this.#refusal));
    return withinDeadline(call, this.#timeoutMs).then(this.#succeed, this.#fail);
  }

  readonly #succeed = <T>(reply: T): T => {
    this.#health.succeed(this.#now());
    return reply;
  };

  readonly #fail = (error: unknown): never => {
    const fault = toRedisFault(error);
    if (fault.word === 'error') this.#health.succeed(this.#now());
    else this.#health.fail(causeOf(fault), this.#now());
    throw fault;
  };

  #watch(client: Client): void {
    client.on('ready', () => {
      this.#whenReached.resolve();
      this.#policyChecked = this.#checkPolicy();
      this.#policyChecked.catch(() => {});
    });
    client.on('error', (error) => this.#health.fail(causeOf(error), this.#now()));
    // Of a Cluster: why one of its nodes cannot be reached.
    client.on('node error', (error) => this.#health.fail(causeOf(error), this.#now()));
    client.on('close', () => this.#health.fail({ word: 'connection', text: undefined }, this.#now()));
  }

  #openConfirmed(): ClaimPath & { readonly client: Client } {
    const client = createClient(this.#clientOptions);
    client.on('error', () => {});
    const opened = new Promise<void>((resolve) => client.once('ready', resolve));
    return { client, claims: new Claims(client), opened };
  }

  #countClaim(ms: number, asked: number, confirmed: number): void {
    const counts = this.#claimCounts;
    counts.made += 1;
    counts.totalMs += ms;
    if (asked === 0) return;
    counts.lastConfirmed = confirmed;
    this.#lastConfirmedAt = this.#now();
    if (confirmed >= asked) this.#replication.succeed(this.#now());
    else {
      counts.unconfirmed += 1;
      this.#replication.fail(lackOf(confirmed, asked), this.#now());
    }
  }

  /** What no traffic would tell: that Redis answers, which policy it has by now, how full it is. */
  #onBeat(): void {
    this.#beat += 1;
    const now = this.#now();
    this.#health.tick(now);
    this.#replication.tick(now);
    if (this.#beat % beatsAQuestion !== 0) return;
    this.#learnFacts().catch(() => {});
    void this.#nameCause();
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
        // Until it has told, nobody knows whether it may be used: a server that was too slow is asked again.
        const isSlow = toRedisFault(error).word === 'timeout' && this.#client.status === 'ready';
        if (!isSlow || this.#health.state.status === 'closed') throw error;
      }
    }
    const { evictingPolicy } = this.#facts ?? {};
    if (evictingPolicy !== undefined) throw new RedisUnavailable('evicting', policyFault(evictingPolicy));
    const server = this.#client instanceof Cluster ? this.#client.nodes('master')[0] : this.#client;
    if (server === undefined) return;
    const { prefix = 'shopward' } = this.#options;
    this.#missingRights = await withinDeadline(() => findMissingRights(server, prefix), this.#timeoutMs);
  }

  async #learnFacts(): Promise<void> {
    const asked = () => askServerFacts(this.#client);
    const facts = await withinDeadline(asked, this.#timeoutMs).catch((error: unknown) => {
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

/** Milliseconds. */
const beatMs = 1_000;
/** INFO is asked every so many beats. */
const beatsAQuestion = 4;

function lackOf(confirmed: number, asked: number): Cause {
  return { word: 'noreplicas', text: `${confirmed} of ${asked} replicas confirm` };
}

function policyFault(policy: string): Error {
  return new Error(`maxmemory-policy is ${policy}; it has to be noeviction`);
}
