import { Cluster } from 'ioredis';
import { Claims } from './claims.ts';
import {
  type Client,
  type ClientOptions,
  closeClient,
  createClient,
  type RedisCredentials,
  useCredentials,
} from './clients.ts';
import { isUnknownScript, RedisUnavailable, withinDeadline } from './faults.ts';
import type { ClaimReply, ClaimScript, Redis, RedisArgument, RedisScript, RedisStatus } from './redis.ts';
import { parseRedisUrl, type RedisAddress } from './redis-url.ts';
import type { Health } from './store-health.ts';
import { RedisWatch, type WatchOptions } from './watch.ts';

export interface ConnectRedisOptions extends WatchOptions {
  /** A URL as `parseRedisUrl` reads it, or its result. */
  readonly url: string | RedisAddress;
  /** Milliseconds after which every call is rejected. Default 500. */
  readonly timeoutMs?: number;
  /** User and password default to those of the URL. */
  readonly credentials?: RedisCredentials;
}

/** Connects in the background, and again after each loss. Throws only for a malformed URL. */
export function connectRedis(options: ConnectRedisOptions): ConnectedRedis {
  return new ConnectedRedis(options);
}

interface ConfirmedClaims {
  readonly client: Client;
  readonly claims: Claims;
  /** Resolves when its connection was made for the first time. */
  readonly opened: Promise<void>;
}

class ConnectedRedis implements Redis {
  readonly kind: Redis['kind'];
  readonly #clientOptions: ClientOptions;
  readonly #client: Client;
  readonly #watch: RedisWatch;
  readonly #timeoutMs: number;
  readonly #claims: Claims;
  /** The connection for claims that replicas have to confirm: WAIT would block other calls. */
  #confirmed: ConfirmedClaims | undefined;
  #isGathering = false;

  constructor(options: ConnectRedisOptions) {
    const { url, timeoutMs = 500 } = options;
    const address = typeof url === 'string' ? parseRedisUrl(url) : url;
    this.kind = address.kind;
    this.#timeoutMs = timeoutMs;
    const { username, password } = address;
    this.#clientOptions = { address, timeoutMs, credentials: { username, password, ...options.credentials } };
    this.#client = createClient(this.#clientOptions);
    this.#watch = new RedisWatch(this.#client, this.#clientOptions, options);
    this.#claims = new Claims(this.#client);
  }

  command(name: string, ...args: readonly RedisArgument[]): Promise<unknown> {
    return this.#call(() => {
      this.#gatherWrites();
      return this.#client.call(name, ...args);
    });
  }

  runScript(script: RedisScript, keys: readonly string[], args: readonly RedisArgument[]): Promise<unknown> {
    this.#gatherWrites(script.isGathered);
    const deadlineMs = performance.now() + this.#timeoutMs;
    return this.#call(() => {
      const client = this.#client;
      return client.evalsha(script.sha1, keys.length, ...keys, ...args).catch((error: unknown) => {
        // After the deadline the caller has been answered: nothing is sent any more.
        if (!isUnknownScript(error) || performance.now() >= deadlineMs) throw error;
        return client.eval(script.lua, keys.length, ...keys, ...args);
      });
    });
  }

  async runClaim(
    script: ClaimScript,
    keys: readonly string[],
    args: readonly RedisArgument[],
    replicas: number,
  ): Promise<ClaimReply> {
    const startedMs = performance.now();
    const deadlineMs = startedMs + this.#timeoutMs;
    const claim = { script, keys, args, replicas, startedMs, deadlineMs, mayTakeEffect: false };
    if (replicas === 0) this.#gatherWrites(script.isGathered);
    else this.#confirmed ??= this.#openConfirmed();
    try {
      const reply = await this.#call(() => {
        if (this.#client.status !== 'ready') throw new RedisUnavailable('connection');
        if (replicas === 0 || this.#confirmed === undefined) return this.#claims.send(claim);
        const { opened, claims } = this.#confirmed;
        return opened.then(() => claims.send(claim));
      });
      const count = script.isGathered === true ? keys.length - 1 : 1;
      this.#watch.countClaims(count, performance.now() - startedMs, replicas, reply.replicas);
      return reply;
    } catch (fault) {
      if (!claim.mayTakeEffect || !(fault instanceof RedisUnavailable)) throw fault;
      throw new RedisUnavailable(fault.word, fault.cause, deadlineMs);
    }
  }

  /** For connections that are opened from now on. */
  useCredentials(credentials: RedisCredentials): void {
    this.#clientOptions.credentials = credentials;
    for (const client of [this.#client, this.#confirmed?.client])
      if (client !== undefined) useCredentials(client, credentials);
  }

  state(): Health {
    return this.#watch.state();
  }

  status(): RedisStatus {
    return this.#watch.status();
  }

  ready(withinMs: number): Promise<boolean> {
    return this.#watch.ready(withinMs);
  }

  async close(): Promise<void> {
    this.#watch.close();
    for (const client of [this.#client, this.#confirmed?.client])
      if (client !== undefined) closeClient(client);
  }

  /**
   * Delays writes until the end of the tick, so that all calls of a tick are sent in one write and answered in one: a
   * write for each would be half of the cost of a call. `isEndOfTick`: the caller runs at the end of the tick already, so its
   * write waits only for the others there. Not for a Cluster, which chooses its connections itself.
   */
  #gatherWrites(isEndOfTick = false): void {
    if (this.#isGathering || this.#client instanceof Cluster) return;
    const { stream } = this.#client;
    // Undefined before the first connection.
    if (stream === undefined) return;
    this.#isGathering = true;
    stream.cork();
    const write = () => {
      this.#isGathering = false;
      stream.uncork();
    };
    if (isEndOfTick) process.nextTick(write);
    else setImmediate(write);
  }

  #call<T>(call: () => Promise<T>): Promise<T> {
    const refusal = this.#watch.refusal();
    if (refusal !== undefined) return Promise.reject(new RedisUnavailable(refusal));
    return withinDeadline(call, this.#timeoutMs).then(this.#watch.succeed, this.#watch.fail);
  }

  #openConfirmed(): ConfirmedClaims {
    const client = createClient(this.#clientOptions);
    client.on('error', () => {});
    const opened = new Promise<void>((resolve) => client.once('ready', resolve));
    return { client, claims: new Claims(client), opened };
  }
}
