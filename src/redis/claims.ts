import calculateSlot from 'cluster-key-slot';
import { Cluster, type Redis as RedisClient } from 'ioredis';
import { isolated, isolateLate } from '../lib/faults.ts';
import type { Client } from './clients.ts';
import { isMoved, isUnknownScript, lateSince, RedisUnavailable, wasNotRun } from './faults.ts';
import type { RedisArgument, RedisScript } from './redis.ts';
import { ServerClock } from './server-clock.ts';

/** One call of a claim script, on its way. */
interface Claim {
  readonly script: RedisScript;
  readonly keys: readonly string[];
  readonly args: readonly RedisArgument[];
  /** Replicas that must confirm it; 0: none is asked. */
  readonly replicas: number;
  /** `performance.now`, milliseconds. */
  readonly startedMs: number;
  /** Moment at which its caller is answered, whatever has come until then. */
  readonly deadlineMs: number;
  /** It was written to a connection, and no reply has said that it changed nothing. */
  mayHold: boolean;
  /** The deadline in the server's time as it was sent last, microseconds. */
  sentDeadline?: number;
}

export interface ClaimReply {
  readonly reply: unknown;
  /** How many replicas hold it. */
  readonly replicas: number;
}

/** Node's timers may fire this much before the moment that `performance.now` shows. Milliseconds. */
const timerSlackMs = 2;
/** A claim of which less than this share of its time is left would only be late after its WAIT. */
const leastShareLeft = 1 / 4;

/**
 * Sends claims. Each goes to one server, is never redirected by the client, and carries its deadline in the time of that
 * very server, which the connection has learned. So it takes effect before its caller is answered, or never.
 */
export class Claims {
  readonly #client: Client;
  readonly #lanes = new WeakMap<RedisClient, Lane>();

  constructor(client: Client) {
    this.#client = client;
  }

  async send(claim: Claim): Promise<ClaimReply> {
    const lane = this.#laneOf(claim);
    try {
      return await lane.send(claim);
    } catch (error) {
      // Another node has the slot by now, so it was not executed.
      if (!isMoved(error) || !(this.#client instanceof Cluster)) throw error;
      await refreshSlots(this.#client);
      return this.#laneOf(claim).send(claim);
    }
  }

  #laneOf({ keys: [key = ''] }: Claim): Lane {
    const server = this.#client instanceof Cluster ? nodeOf(this.#client, key) : this.#client;
    if (server === undefined) throw new RedisUnavailable('connection');
    const known = this.#lanes.get(server);
    if (known !== undefined) return known;
    const lane = new Lane(server);
    this.#lanes.set(server, lane);
    return lane;
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
  /** The server does not know the script by its digest. */
  isUnknown: boolean;
}

/**
 * The claims on one connection. Where replicas have to confirm them, one WAIT confirms all that were sent before it, and
 * those that come meanwhile gather for the next one: WAIT holds up whatever is sent after it on its connection.
 */
class Lane {
  readonly #server: RedisClient;
  readonly #clock = new ServerClock();
  #learning: Promise<void> | undefined;
  #queue: Queued[] = [];
  /** The round of claims whose WAIT has not answered; a lost connection ends it. */
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
      const isUnknown = isUnknownScript(error);
      if (!isUnknown && !this.#isClockCorrected(error, claim)) throw error;
      return { reply: await this.#write(claim, isUnknown), replicas: 0 };
    }
  }

  #enqueue(claim: Claim): Promise<ClaimReply> {
    const answer = Promise.withResolvers<ClaimReply>();
    this.#queue.push({ claim, answer, isUnknown: false });
    this.#sendRound();
    return answer.promise;
  }

  /** What has gathered, and one WAIT after it. */
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
    // Rejections are looked at after that of WAIT.
    for (const reply of replies) reply.catch(() => {});
    const confirmed = this.#confirm(batch)
      .then(
        (replicas) => {
          for (const [i, each] of batch.entries()) isolateLate(this.#settle(each, replies[i], replicas));
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
    // Replicas that do not answer must not eat all that is left: the callers need their answers in time.
    const waitMs = Math.max(1, Math.floor(leftMs / 2));
    return this.#server.wait(replicas, waitMs);
  }

  /** The reply has come before that of WAIT. */
  async #settle(
    { claim, answer }: Queued,
    reply: Promise<unknown> | undefined,
    replicas: number,
  ): Promise<void> {
    try {
      answer.resolve({ reply: await reply, replicas });
    } catch (error) {
      const isUnknown = isUnknownScript(error);
      if (isUnknown || this.#isClockCorrected(error, claim)) {
        this.#queue.push({ claim, answer, isUnknown });
        this.#sendRound();
      } else answer.reject(error);
    }
  }

  /** Writes the claim to the socket, unless its caller has been answered or the server's time is not known. */
  async #write(claim: Claim, isWhole: boolean): Promise<unknown> {
    const { script, keys, args, deadlineMs } = claim;
    if (deadlineMs - timerSlackMs <= performance.now()) throw new RedisUnavailable('timeout');
    if (!this.#isClockKnown()) throw new RedisUnavailable('connection');
    if (!this.#clock.isFresh(performance.now())) this.#learn().catch(() => {});
    claim.sentDeadline = this.#clock.atLeast(deadlineMs - timerSlackMs);
    const all = [...keys, ...args, claim.sentDeadline];
    claim.mayHold = true;
    try {
      return await (isWhole
        ? this.#server.eval(script.lua, keys.length, ...all)
        : this.#server.evalsha(script.sha1, keys.length, ...all));
    } catch (error) {
      if (wasNotRun(error)) claim.mayHold = false;
      throw error;
    }
  }

  /** A connection that would refuse what is sent on it now; those of a Cluster open themselves when they are used. */
  #isOpening(): boolean {
    return this.#server.status !== 'ready' && this.#server.options.enableOfflineQueue === false;
  }

  #isClockKnown(): boolean {
    return this.#server.status === 'ready' && this.#clock.isKnown(performance.now());
  }

  /** Asks the server for its time; once, however many want to know. */
  #learn(): Promise<void> {
    this.#learning ??= this.#askTime().finally(() => {
      this.#learning = undefined;
    });
    return this.#learning;
  }

  async #askTime(): Promise<void> {
    const askedMs = performance.now();
    const [seconds, micros] = await this.#server.time();
    this.#clock.hear(Number(seconds) * 1_000_000 + Number(micros), askedMs, performance.now());
  }

  /** A claim that was late by the server's clock, not by ours: that clock was set forward, and its time is known. */
  #isClockCorrected(error: unknown, { deadlineMs, sentDeadline = 0 }: Claim): boolean {
    const storeMicros = lateSince(error);
    if (storeMicros === undefined) return false;
    const now = performance.now();
    this.#clock.hear(storeMicros, now, now);
    // Whoever of those that were sent together has corrected it.
    return this.#clock.atLeast(deadlineMs - timerSlackMs) > sentDeadline;
  }

  #rejectAll(error: unknown): void {
    for (const { answer } of this.#queue.splice(0)) answer.reject(error);
  }
}

/** Whose time is over has been answered, and who has little left would be before WAIT is. */
function hasTimeToWait({ startedMs, deadlineMs }: Claim): boolean {
  return deadlineMs - performance.now() > (deadlineMs - startedMs) * leastShareLeft;
}
