import { isAnswer, isRejection } from '../../../src/http/rejection.ts';
import { RedisUnavailable } from '../../../src/redis/faults.ts';
import type { RefreshTokenContext } from '../../../src/refresh-tokens/context.ts';
import type { TokenEndpoint } from '../../../src/refresh-tokens/endpoints.ts';
import { newFamily, recordIssued } from '../../../src/refresh-tokens/issue.ts';
import { MemoryRecords } from '../../../src/refresh-tokens/memory-store.ts';
import {
  type KindName,
  type NextRecord,
  type Records,
  tokens,
} from '../../../src/refresh-tokens/protocol.ts';
import { beginRefresh } from '../../../src/refresh-tokens/refresh.ts';
import { RetryQueue } from '../../../src/refresh-tokens/retry-queue.ts';
import { beginRevocation } from '../../../src/refresh-tokens/revoke.ts';
import { createDigests } from '../../../src/refresh-tokens/token-digest.ts';
import { type TokenSteps, TokenStore } from '../../../src/refresh-tokens/token-store.ts';
import type { FamilyId } from '../../../src/refresh-tokens/token-values.ts';
import type { ForwardOutcome, UpstreamHooks } from '../../../src/upstream/hooks.ts';

/**
 * Two replicas of the real code on one store. Its calls are slow, or time out and are carried out early, late or never.
 * Clients send any token they ever had, the shop refreshes any token, and replicas die. The model has its own clock. It
 * throws the first broken promise.
 */
export interface ModelOptions {
  readonly seed: number;
  /** Steps that are broken on purpose. */
  readonly steps?: TokenSteps;
  /** Operations of the store, or of its records, that are broken on purpose. */
  readonly store?: Partial<TokenStore>;
  readonly records?: (memory: MemoryRecords) => Partial<Records>;
  readonly moves?: number;
}

const [answerWithinMs, marginMs, storeMs] = [10_000, 2000, 500];
const digests = createDigests('model');
const endpoint: TokenEndpoint = {
  kind: 'exchange',
  method: 'POST',
  path: '/token',
  format: 'form',
  fields: {
    accessToken: 'access_token',
    refreshToken: 'refresh_token',
    refreshExpiresIn: 'refresh_expires_in',
  },
};

/** A refresh token and its true history. */
interface Token {
  readonly text: string;
  readonly user: string;
  readonly parent: Token | undefined;
  /** The family in the store. */
  family: FamilyId | undefined;
  readonly issuedAtMs: number;
  /** When the client got it. Only from then on can it revoke the token. */
  givenAtMs: number;
  /** The start of the refresh that issued it, or the time of the login. A `mine` after this time ends it. */
  readonly sinceMs: number;
  /** When the store got its used mark. */
  markedAtMs: number;
  recordedAtMs: number;
  /** Whether its record was written only after a failed attempt. */
  isLate: boolean;
  /** Whether the shop kept it in a refresh before it was recorded. Then it is in a new family. */
  isKeptUnknown: boolean;
  exchangedAtMs: number;
  /** When its successful refresh began. */
  begunAtMs: number;
  /** When its first revocation began, and when one was acknowledged. */
  revokedFromMs: number;
  revokedByMs: number;
  openUntilMs: number;
  /** Refreshes by clients that were not told to wait, which found it used or have no answer yet. */
  replays: number;
  /** The value in the store. */
  awaitedUntilMs: number;
}

interface Replica {
  isDead: boolean;
  readonly context: RefreshTokenContext;
}

export async function runModel({
  seed,
  steps,
  store: broken,
  records: brokenRecords,
  moves = 120,
}: ModelOptions): Promise<number> {
  const world = new World(seed);
  const memory = new MemoryRecords({ now: () => world.nowMs });
  const records = new Proxy(memory, {
    get: (target, name: keyof Records) => brokenRecords?.(memory)[name] ?? target[name].bind(target),
  });
  const open = (kept: Records) =>
    Object.assign(
      new TokenStore(kept, { lifetimeMs: 1e9, retentionMs: 'keep', ...(steps && { steps }) }),
      broken,
    );
  const play = new Play(world, records, open);
  for (let i = 0; i < moves; i += 1) world.after(world.below(moves * 400), () => play.move());
  await world.run();
  // All refreshes are over, so no token may still be claimed.
  world.nowMs += answerWithinMs + marginMs + 1;
  await play.expectNothingShut();
  return play.forwarded;
}

class Play {
  forwarded = 0;
  readonly #world: World;
  readonly #records: Records;
  readonly #open: (records: Records) => TokenStore;
  readonly #tokens: Token[] = [];
  readonly #replicas: Replica[];
  #revocations = 0;
  readonly #all = new Map<string, { fromMs: number; byMs: number }[]>();
  readonly #ended = new Map<FamilyId, number>();
  #count = 0;

  constructor(world: World, records: Records, open: (records: Records) => TokenStore) {
    this.#world = world;
    this.#records = records;
    this.#open = open;
    this.#replicas = [this.#start(), this.#start()];
  }

  move(): void {
    const which = this.#world.below(100);
    const replica = this.#world.pick(this.#replicas);
    const token = this.#world.pick(this.#tokens);
    if (token === undefined || which < 12) go(this.#signIn(replica));
    else if (which < 80) go(this.#refresh(replica, token));
    else if (which < 88) go(this.#revoke(replica, token, token.text));
    else if (which < 94) go(this.#revoke(replica, token, 'mine'));
    else if (which < 97) {
      replica.isDead = true;
      this.#replicas[this.#replicas.indexOf(replica)] = this.#start();
    }
  }

  async expectNothingShut(): Promise<void> {
    const store = this.#open(this.#records);
    for (const token of this.#tokens) {
      const { kind } = await store.claim(digests.ofToken(token.text), 'last', 1);
      if (kind === 'in-exchange') fail(`${token.text} is shut for ever`);
    }
  }

  #start(): Replica {
    const replica = { isDead: false } as { isDead: boolean; context: RefreshTokenContext };
    const retries = new RetryQueue({
      retryMs: 1e9,
      emit: (event) =>
        event === 'write-lost'
          ? fail('a write was lost')
          : this.#world.after(250, () => go(this.#flush(replica))),
    });
    replica.context = {
      store: this.#open(this.#world.slow(this.#records, replica, (...args) => this.#note(...args))),
      subjectOf: (accessToken) => accessToken,
      lifetimeMs: 1e9,
      answerWithinMs,
      shopTimeoutMs: answerWithinMs,
      marginMs,
      answerBytes: 65_536,
      monotonicNow: () => this.#world.nowMs,
      replay: 'end-family',
      leewayMs: 0,
      digests,
      retries,
      emit: () => {},
    };
    return replica;
  }

  async #flush(replica: Replica): Promise<void> {
    if (replica.isDead) return;
    await replica.context.retries.flush();
    if (replica.context.retries.waiting > 0) this.#world.after(250, () => go(this.#flush(replica)));
  }

  /** Notes a replaced record. */
  #note(kind: KindName, id: string, { text }: NextRecord): void {
    const token = this.#tokens.find((each) => digests.ofToken(each.text) === id);
    if (token === undefined || kind !== 'token' || text === '') return;
    const { nowMs } = this.#world;
    const { usedAtMs, life, family, awaitedUntilMs } = tokens.decode(text);
    token.awaitedUntilMs = Math.max(token.awaitedUntilMs, awaitedUntilMs);
    if (usedAtMs !== null) token.markedAtMs = Math.min(token.markedAtMs, nowMs);
    else if (life !== null && token.recordedAtMs === Infinity) {
      token.recordedAtMs = nowMs;
      token.isLate = nowMs - token.issuedAtMs > storeMs;
    }
    // The first record or used mark of a token sets its family.
    token.family ??= family ?? undefined;
    const { parent } = token;
    if (parent === undefined || parent.recordedAtMs >= parent.begunAtMs || token.isKeptUnknown) return;
    if (token.recordedAtMs === nowMs && token.markedAtMs >= nowMs && token.family !== parent.family)
      fail(`${token.text} has left its family`);
  }

  #issue(user: string, parent?: Token, sinceMs = this.#world.nowMs): Token {
    this.#count += 1;
    const text = `token-${this.#count}`;
    const token: Token = {
      text,
      user,
      parent,
      family: undefined,
      givenAtMs: Infinity,
      begunAtMs: Infinity,
      issuedAtMs: this.#world.nowMs,
      sinceMs,
      markedAtMs: Infinity,
      recordedAtMs: Infinity,
      isLate: false,
      isKeptUnknown: false,
      exchangedAtMs: Infinity,
      revokedFromMs: Infinity,
      revokedByMs: Infinity,
      openUntilMs: 0,
      replays: 0,
      awaitedUntilMs: 0,
    };
    this.#tokens.push(token);
    return token;
  }

  async #signIn({ context }: Replica): Promise<void> {
    const token = this.#issue(this.#world.pick(['ann', 'bob']));
    const { text, user } = token;
    const subject = digests.ofSubject(user);
    const tokens = { refreshToken: text, accessToken: user, lifetimeMs: undefined };
    await recordIssued(context, tokens, { subject, family: newFamily() });
    token.givenAtMs = this.#world.nowMs;
  }

  async #refresh(replica: Replica, token: Token, hasWaited = false): Promise<void> {
    const { context } = replica;
    const begunMs = this.#world.nowMs;
    if (!hasWaited) token.replays += 1;
    const verdict = await beginRefresh(context, [endpoint], { fields: [] }, token.text, false);
    if (isAnswer(verdict)) fail('an answer without a leeway');
    const isUsed = isRejection(verdict) && verdict.reason === 'used';
    if (!hasWaited && !isUsed) token.replays -= 1;
    if (!isRejection(verdict)) {
      this.#world.after(this.#world.below(marginMs), () =>
        go(this.#forward(replica, token, verdict as UpstreamHooks, begunMs)),
      );
      return;
    }
    if (verdict.rejection === 'refresh-token-busy' && token.recordedAtMs < begunMs) {
      // The client waits as told, and up to a second longer.
      const waitMs = (verdict.retryAfterSeconds ?? 0) * 1000 + this.#world.below(1000);
      this.#world.after(waitMs, () => go(this.#refresh(replica, token, true)));
    }
    if (verdict.rejection !== 'refresh-token-invalid') return;
    this.#expectInVain(token, verdict.reason);
    const { family } = token;
    // Only a used token of a client that did not wait ends its family, and only if no write waits.
    if (!isUsed || hasWaited || family === undefined || context.retries.waiting > 0) return;
    // While a waiting client is expected, a used token counts as a second tab.
    if (begunMs < token.awaitedUntilMs) return;
    if (!this.#ended.has(family)) this.#ended.set(family, this.#world.nowMs);
  }

  #expectInVain(token: Token, reason: string | undefined): void {
    const { user, sinceMs, isLate } = token;
    const slackMs = isLate || token.recordedAtMs === Infinity ? 1001 : 0;
    const byAll = this.#allOf(user).some(({ byMs }) => byMs >= sinceMs - slackMs);
    const wasReplayed = this.#tokens.some(
      (each) => each.family === token.family && each.exchangedAtMs < Infinity && each.replays > 0,
    );
    const isTrue =
      reason === 'used'
        ? token.exchangedAtMs < Infinity
        : token.revokedFromMs < Infinity || byAll || wasReplayed;
    if (!isTrue) fail(`${token.text} was called ${reason}`);
  }

  #allOf(user: string) {
    return this.#all.get(user) ?? [];
  }

  async #forward(replica: Replica, token: Token, hooks: UpstreamHooks, begunMs: number): Promise<void> {
    const { nowMs } = this.#world;
    if (replica.isDead) return;
    if (hooks.maySend?.() === false) {
      await hooks.onOutcome({ kind: 'unsent', fault: 'late' as never });
      return;
    }
    this.#expectMayBeForwarded(token, begunMs);
    this.forwarded += 1;
    token.openUntilMs = nowMs + answerWithinMs;
    const tookMs = this.#world.below(answerWithinMs + 2000);
    this.#world.after(Math.min(tookMs, answerWithinMs - 1), () => {
      const outcome = this.#shop(token, tookMs < answerWithinMs, begunMs);
      if (outcome.kind === 'answered') token.openUntilMs = this.#world.nowMs;
      go(
        Promise.resolve(hooks.onOutcome(outcome)).then(() => {
          for (const each of this.#tokens) if (each.parent === token) each.givenAtMs = this.#world.nowMs;
        }),
      );
    });
  }

  #expectMayBeForwarded(token: Token, begunMs: number): void {
    const { nowMs } = this.#world;
    if (token.openUntilMs > nowMs) fail(`${token.text} is forwarded twice at a time`);
    if (token.markedAtMs < begunMs) fail(`${token.text} is refreshed again`);
    if (token.recordedAtMs >= begunMs) return;
    if (token.revokedByMs < begunMs) fail(`${token.text} was revoked`);
    const byAll = this.#allOf(token.user).some(
      ({ fromMs, byMs }) => fromMs > token.givenAtMs && byMs < begunMs,
    );
    if (byAll) fail(`${token.text} was revoked with all`);
    if (token.family !== undefined && (this.#ended.get(token.family) ?? Infinity) < begunMs)
      fail(`${token.text} is of an ended family`);
  }

  /** A shop that refreshes any token, except for random failures. */
  #shop(token: Token, isInTime: boolean, begunMs: number): ForwardOutcome {
    const which = this.#world.below(10);
    if (!isInTime || which === 0) return { kind: 'unknown', fault: 'timeout' };
    if (which < 3) return { kind: 'answered', status: 500, fields: [], body: Buffer.from('oops') };
    if (which < 4) return { kind: 'answered', status: 400, fields: [], body: Buffer.from('{}') };
    const success = (pair: object): ForwardOutcome => {
      const fields = ['Content-Type', 'application/json'];
      return { kind: 'answered', status: 200, fields, body: Buffer.from(JSON.stringify(pair)) };
    };
    if (which < 6) {
      // The shop keeps the token. Its answer repeats the token or leaves it out.
      token.givenAtMs = this.#world.nowMs;
      if (token.recordedAtMs === Infinity) token.isKeptUnknown = true;
      return success({ access_token: token.user, ...(which < 5 && { refresh_token: token.text }) });
    }
    token.exchangedAtMs = this.#world.nowMs;
    token.begunAtMs = begunMs;
    const { text, user } = this.#issue(token.user, token, begunMs);
    return success({ access_token: user, refresh_token: text });
  }

  async #revoke({ context }: Replica, token: Token, named: string): Promise<void> {
    const fromMs = this.#world.nowMs;
    const isKnown = token.recordedAtMs < Infinity;
    token.revokedFromMs = Math.min(token.revokedFromMs, named === 'mine' ? Infinity : fromMs);
    // A failed revocation may still be noted later. It counts as begun, not as acknowledged.
    const entry = { fromMs, byMs: Infinity };
    if (named === 'mine') this.#all.set(token.user, [...this.#allOf(token.user), entry]);
    // Every second revocation has the token in its body, as in RFC 7009.
    this.#revocations += 1;
    const isShown = named !== 'mine' && this.#revocations % 2 === 0;
    const hooks = await beginRevocation(
      context,
      isShown ? { shown: named, format: 'form' } : { named, subject: token.user },
    );
    if (hooks === undefined || isRejection(hooks)) return;
    entry.byMs = this.#world.nowMs;
    if (named !== 'mine' && isKnown) token.revokedByMs = Math.min(token.revokedByMs, this.#world.nowMs);
    await hooks.onOutcome({ kind: 'answered', status: 204, fields: [], body: null });
  }
}

/** Time, random numbers, and a store whose calls are slow or fail. */
class World {
  nowMs = 1_800_000_000_000;
  readonly #events: { readonly atMs: number; readonly run: () => void }[] = [];
  #state: number;

  constructor(seed: number) {
    this.#state = (seed * 2_654_435_761) >>> 0;
  }

  /** A random integer from 0 to `limit - 1` (mulberry32). */
  below(limit: number): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let t = this.#state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) % Math.max(1, limit);
  }

  pick<T>(from: readonly T[]): T {
    return from[this.below(from.length)] as T;
  }

  after(ms: number, run: () => void): void {
    this.#events.push({ atMs: this.nowMs + ms, run });
  }

  async run(): Promise<void> {
    while (this.#events.length > 0) {
      let next = 0;
      for (const [i, { atMs }] of this.#events.entries())
        if (atMs < (this.#events[next]?.atMs ?? 0)) next = i;
      const [event] = this.#events.splice(next, 1);
      if (event === undefined) return;
      this.nowMs = event.atMs;
      event.run();
      await new Promise(setImmediate);
      if (failure !== undefined) throw takeFailure();
    }
  }

  slow(
    records: Records,
    replica: { isDead: boolean },
    onReplaced: (kind: KindName, id: string, next: NextRecord) => void,
  ): Records {
    const world = this;
    return new Proxy(records, {
      get(target, name: keyof Records) {
        const operation = target[name] as (...all: unknown[]) => unknown;
        return (...args: unknown[]) =>
          new Promise((resolve, reject) => {
            const carryOut = () => {
              const answer = operation(...args);
              const [kind, id, , next] = args as [KindName, string, string, NextRecord];
              if (answer === 'replaced') onReplaced(kind, id, next);
              return answer;
            };
            const giveUp = () => replica.isDead || reject(new RedisUnavailable('timeout'));
            const chance = world.below(100);
            if (chance < 90) {
              world.after(1 + world.below(40), () => {
                const answer = carryOut();
                if (!replica.isDead) resolve(answer);
              });
              return;
            }
            world.after(storeMs, giveUp);
            if (chance < 94) world.after(world.below(storeMs), carryOut);
            else if (chance < 98) world.after(storeMs + world.below(4000), carryOut);
          });
      },
    });
  }
}

function go(play: Promise<unknown>): void {
  play.catch((fault: Error) => {
    failure ??= fault;
  });
}

/** Kept for the run to throw, because most promises of the run are not awaited. */
let failure: Error | undefined;

function fail(text: string): never {
  failure ??= new Error(text);
  throw failure;
}

function takeFailure(): Error {
  const found = failure ?? new Error('nothing failed');
  failure = undefined;
  return found;
}
