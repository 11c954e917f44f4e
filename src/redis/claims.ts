import calculateSlot from 'cluster-key-slot';
import { Cluster, type Redis as RedisClient } from 'ioredis';
import { singleFlight } from '../lib/eventually.ts';
import { isolated, isolateLate } from '../lib/faults.ts';
import type { Client } from './clients.ts';
import { isMoved, isUnknownScript, lateSince, RedisUnavailable, wasNotRun } from './faults.ts';
import type { ClaimReply, ClaimScript, RedisArgument } from './redis.ts';
import { ServerClock } from './server-clock.ts';

/** A call of a claim script under way. */
interface Claim {
  readonly script: ClaimScript;
  readonly keys: readonly string[];
  readonly args: readonly RedisArgument[];
  /** Replicas that must confirm it; 0: none is asked. */
  readonly replicas: number;
  /** `performance.now`, milliseconds. */
  readonly startedMs: number;
  /** When its caller gets an answer at the latest (`performance.now`). */
  readonly deadlineMs: number;
  /** Whether it may take effect: it was written to a connection, and no reply has said that it changed nothing. */
  mayTakeEffect: boolean;
}

/** Milliseconds by which Node's timers may fire early, compared with `performance.now`. */
const timerSlackMs = 2;
/** A claim with less than this share of its time left is not sent: its WAIT would end too late. */
const leastShareLeft = 1 / 4;

/**
 * Sends claims. Each goes to one server, without redirections by the client, and carries its deadline in the time of that
 * very server. So a claim takes effect before its caller is answered, or never.
 */
export class Claims {
  readonly #client: Client;
  readonly #servers = new WeakMap<RedisClient, ServerClaims>();

  constructor(client: Client) {
    this.#client = client;
  }

  async send(claim: Claim): Promise<ClaimReply> {
    const claims = this.#ofServer(claim);
    try {
      return await claims.send(claim);
    } catch (error) {
      // MOVED: another node has the slot, so the claim was not executed and may be sent again.
      if (!isMoved(error) || !(this.#client instanceof Cluster)) throw error;
      await refreshSlots(this.#client);
      return this.#ofServer(claim).send(claim);
    }
  }

  #ofServer({ keys: [key = ''] }: Claim): ServerClaims {
    const server = this.#client instanceof Cluster ? nodeOf(this.#client, key) : this.#client;
    if (server === undefined) throw new RedisUnavailable('connection');
    const known = this.#servers.get(server);
    if (known !== undefined) return known;
    const claims = new ServerClaims(server);
    this.#servers.set(server, claims);
    return claims;
  }
}

/** The connection to the node that has the key's slot, as far as the client knows. */
function nodeOf(cluster: Cluster, key: string): RedisClient | undefined {
  const [name] = cluster.slots[calculateSlot(key)] ?? [];
  return cluster.nodes('master').find(({ options: { host, port } }) => `${host}:${port}` === name);
}

function refreshSlots(cluster: Cluster): Promise<void> {
  return new Promise((resolve, reject) => {
    cluster.refreshSlotsCache((error) => (error ? reject(error) : resolve()));
  });
}

interface Queued {
  readonly claim: Claim;
  readonly answer: PromiseWithResolvers<ClaimReply>;
  /** The server replied NOSCRIPT: the whole script has to be sent. */
  isUnknown: boolean;
}

/**
 * The claims on one connection. Where replicas have to confirm them, they are sent in rounds that end with a WAIT, which
 * confirms all that were sent before it. WAIT blocks its connection, so claims that come meanwhile are queued for the next round.
 */
class ServerClaims {
  readonly #server: RedisClient;
  readonly #clock = new ServerClock();
  #queue: Queued[] = [];
  /** The round whose WAIT has not replied yet; a lost connection ends it. */
  #round: object | undefined;

  constructor(server: RedisClient) {
    this.#server = server;
    const ready = isolated(() => this.#sendRound());
    const closed = isolated(() => {
      this.#clock.forget();
      this.#round = undefined;
      this.#rejectAll(new RedisUnavailable('connection'));
    });
    server.on('ready', ready).on('close', closed);
  }

  async send(claim: Claim): Promise<ClaimReply> {
    if (claim.replicas > 0) return this.#enqueue(claim);
    if (!this.#isClockKnown()) await this.#learn();
    try {
      return { reply: await this.#write(claim, false), replicas: 0 };
    } catch (error) {
      if (!isUnknownScript(error)) throw error;
      return { reply: await this.#write(claim, true), replicas: 0 };
    }
  }

  #enqueue(claim: Claim): Promise<ClaimReply> {
    const answer = Promise.withResolvers<ClaimReply>();
    this.#queue.push({ claim, answer, isUnknown: false });
    this.#sendRound();
    return answer.promise;
  }

  /** Sends the queued claims, then one WAIT. */
  #sendRound(): void {
    if (this.#round !== undefined || this.#queue.length === 0 || this.#isOpening()) return;
    const round = {};
    this.#round = round;
    const next = () => {
      if (this.#round !== round) return;
      this.#round = undefined;
      this.#sendRound();
    };
    if (!this.#isClockKnown()) {
      const learned = this.#learn()
        .catch((error: unknown) => this.#rejectAll(error))
        .then(next);
      isolateLate(learned);
      return;
    }
    const batch = this.#queue.splice(0).filter(({ claim }) => hasTimeToWait(claim));
    const replies = batch.map(({ claim, isUnknown }) => this.#write(claim, isUnknown));
    // `#endOne` handles rejections, after WAIT has replied.
    for (const reply of replies) reply.catch(() => {});
    const confirmed = this.#confirm(batch)
      .then(
        (replicas) => {
          for (const [i, each] of batch.entries()) isolateLate(this.#endOne(each, replies[i], replicas));
        },
        (error: unknown) => {
          for (const { answer } of batch) answer.reject(error);
        },
      )
      .then(next);
    isolateLate(confirmed);
  }

  async #confirm(batch: readonly Queued[]): Promise<number> {
    if (batch.length === 0) return 0;
    let deadlineMs = Number.POSITIVE_INFINITY;
    let replicas = 0;
    for (const { claim } of batch) {
      deadlineMs = Math.min(deadlineMs, claim.deadlineMs);
      replicas = Math.max(replicas, claim.replicas);
    }
    const leftMs = deadlineMs - performance.now();
    // Half of the time that is left: when replicas do not answer, the callers still have to be answered in time.
    const waitMs = Math.max(1, Math.floor(leftMs / 2));
    return this.#server.wait(replicas, waitMs);
  }

  /** Answers one claim after its WAIT: by then its own reply is there. */
  async #endOne({ claim, answer }: Queued, reply: Promise<unknown> | undefined, replicas: number) {
    try {
      answer.resolve({ reply: await reply, replicas });
    } catch (error) {
      if (!isUnknownScript(error)) return answer.reject(error);
      this.#queue.push({ claim, answer, isUnknown: true });
      this.#sendRound();
    }
  }

  /** Writes the claim to the socket. Rejects when it is too late for its caller, or the server's time is not known. */
  async #write(claim: Claim, isWhole: boolean): Promise<unknown> {
    const { script, keys, args, deadlineMs } = claim;
    if (deadlineMs - timerSlackMs <= performance.now()) throw new RedisUnavailable('timeout');
    if (!this.#isClockKnown()) throw new RedisUnavailable('connection');
    if (!this.#clock.isFresh(performance.now())) this.#learn().catch(() => {});
    const all = [...keys, ...args, this.#clock.atLeast(deadlineMs - timerSlackMs)];
    claim.mayTakeEffect = true;
    try {
      return await (isWhole
        ? this.#server.eval(script.lua, keys.length, ...all)
        : this.#server.evalsha(script.sha1, keys.length, ...all));
    } catch (error) {
      if (wasNotRun(error)) claim.mayTakeEffect = false;
      const storeMicros = lateSince(error);
      // If the server's clock was set forward, the next claim uses its new time.
      if (storeMicros !== undefined) this.#clock.hear(storeMicros, performance.now(), performance.now());
      throw error;
    }
  }

  /** Whether the connection would refuse a command now; connections of a Cluster are opened by their first command. */
  #isOpening(): boolean {
    return this.#server.status !== 'ready' && this.#server.options.enableOfflineQueue === false;
  }

  #isClockKnown(): boolean {
    return this.#server.status === 'ready' && this.#clock.isKnown(performance.now());
  }

  /** Asks the server for its time. */
  readonly #learn = singleFlight(async () => {
    const askedMs = performance.now();
    const [seconds, micros] = await this.#server.time();
    this.#clock.hear(Number(seconds) * 1_000_000 + Number(micros), askedMs, performance.now());
  });

  #rejectAll(error: unknown): void {
    for (const { answer } of this.#queue.splice(0)) answer.reject(error);
  }
}

/** Whether enough time is left for a WAIT before the caller is answered. */
function hasTimeToWait({ startedMs, deadlineMs }: Claim): boolean {
  return deadlineMs - performance.now() > (deadlineMs - startedMs) * leastShareLeft;
}
