import { Cluster } from 'ioredis';
import { type ClaimReply, Claims } from './claims.ts';
import {
  type Client,
  type ClientOptions,
  closeClient,
  createClient,
  type RedisTlsOptions,
} from './clients.ts';
import { withinDeadline } from './deadline.ts';
import { findEvictingPolicy } from './eviction-policy.ts';
import { isUnknownScript, toRedisFault } from './faults.ts';
import {
  type Redis,
  type RedisArgument,
  type RedisFaultWord,
  type RedisScript,
  type RedisState,
  RedisUnavailable,
} from './redis.ts';
import { parseRedisUrl, type RedisAddress } from './redis-url.ts';
import { createSubscriptions } from './subscriptions.ts';

export interface ConnectRedisOptions {
  /** See `parseRedisUrl`; what it has parsed already will do. */
  readonly url: string | RedisAddress;
  /** Deadline of every call. Default 500. */
  readonly timeoutMs?: number;
  readonly tls?: RedisTlsOptions;
  readonly sentinelPassword?: string;
  /** Called at every change of state, for one log line each. */
  readonly onState?: (state: RedisState) => void;
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
  readonly #subscriptions: ReturnType<typeof createSubscriptions>;
  readonly #timeoutMs: number;
  readonly #onState: (state: RedisState) => void;
  readonly #now: () => number;
  readonly #main: ClaimPath;
  /** For claims that replicas have to confirm. */
  #confirmed: (ClaimPath & { readonly client: Client }) | undefined;
  #state: RedisState;
  #evicting = false;
  #isGathering = false;
  #judged: Promise<void> = Promise.resolve();
  readonly #whenReached = Promise.withResolvers<void>();

  constructor({ url, timeoutMs = 500, tls, sentinelPassword, onState, now = Date.now }: ConnectRedisOptions) {
    const address = typeof url === 'string' ? parseRedisUrl(url) : url;
    this.kind = address.kind;
    this.#timeoutMs = timeoutMs;
    this.#onState = onState ?? (() => {});
    this.#now = now;
    this.#state = { status: 'connecting', since: now() };
    this.#clientOptions = { address, timeoutMs, tls, sentinelPassword };
    this.#client = createClient(this.#clientOptions);
    this.#main = { claims: new Claims(this.#client), opened: undefined };
    this.#watch(this.#client);
    this.#subscriptions = createSubscriptions(this.#clientOptions);
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
      return await this.#call(async () => {
        if (this.#client.status !== 'ready') throw new RedisUnavailable('connection');
        await opened;
        return claims.send(claim);
      });
    } catch (fault) {
      if (!claim.mayHold || !(fault instanceof RedisUnavailable)) throw fault;
      throw new RedisUnavailable(fault.word, fault.cause, deadlineMs);
    }
  }

  subscribe(channel: string, onMessage: (message: string) => void, onReconnect?: () => void): () => void {
    return this.#subscriptions.subscribe(channel, onMessage, onReconnect);
  }

  state(): RedisState {
    return this.#state;
  }

  async ready(withinMs: number): Promise<boolean> {
    try {
      await withinDeadline(() => this.#whenReached.promise, withinMs);
      await withinDeadline(() => this.#judged, withinMs);
    } catch (error) {
      if (error instanceof RedisUnavailable && error.word === 'evicting') throw error;
      return false;
    }
    return true;
  }

  async close(): Promise<void> {
    this.#enter('closed');
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
    if (this.#state.status === 'closed') return Promise.reject(new RedisUnavailable('closed'));
    if (this.#evicting) return Promise.reject(new RedisUnavailable('evicting'));
    return withinDeadline(call, this.#timeoutMs).then(this.#succeed, this.#fail);
  }

  readonly #succeed = <T>(reply: T): T => {
    if (this.#state.status !== 'ready') this.#enter('ready');
    return reply;
  };

  readonly #fail = (error: unknown): never => {
    const fault = toRedisFault(error);
    if (fault.word !== 'error') this.#enter('away', fault.word);
    throw fault;
  };

  #watch(client: Client): void {
    client.on('ready', () => {
      this.#whenReached.resolve();
      this.#judged = this.#judge();
      this.#judged.catch(() => {});
    });
    client.on('error', (error) => this.#enter('away', toRedisFault(error).word));
    client.on('close', () => this.#enter('away', 'connection'));
  }

  #openConfirmed(): ClaimPath & { readonly client: Client } {
    const client = createClient(this.#clientOptions);
    client.on('error', () => {});
    const opened = new Promise<void>((resolve) => client.once('ready', resolve));
    return { client, claims: new Claims(client), opened };
  }

  async #judge(): Promise<void> {
    const policy = await this.#askPolicy();
    this.#evicting = policy !== undefined;
    if (policy === undefined) {
      this.#enter('ready');
      return;
    }
    this.#enter('away', 'evicting');
    throw new RedisUnavailable(
      'evicting',
      new Error(`maxmemory-policy is ${policy}; it has to be noeviction`),
    );
  }

  /** A server that was too slow to tell is asked again: until it has told, nobody knows whether it may be used. */
  async #askPolicy(): Promise<string | undefined> {
    for (;;) {
      try {
        return await withinDeadline(() => findEvictingPolicy(this.#client), this.#timeoutMs);
      } catch (error) {
        const isSlow = toRedisFault(error).word === 'timeout' && this.#client.status === 'ready';
        if (!isSlow || this.#state.status === 'closed') throw error;
      }
    }
  }

  /** One call of the hook per change, however many calls fail in between. */
  #enter(status: RedisState['status'], word?: RedisFaultWord): void {
    const { status: before } = this.#state;
    if (before === 'closed' || before === status) return;
    this.#state = { status, since: this.#now(), ...(word === undefined ? {} : { word }) };
    this.#onState(this.#state);
  }
}
