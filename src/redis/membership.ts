import { randomUUID } from 'node:crypto';
import { isolated, isolateLate } from '../lib/faults.ts';
import { type RedisFaultWord, RedisUnavailable } from './faults.ts';
import {
  type Agreement,
  agree,
  announceEveryMs,
  announceScript,
  type Member,
  membersKeys,
  memberTtlMs,
  readRegister,
} from './members.ts';
import type { Redis } from './redis.ts';

interface MembershipOptions {
  readonly redis: Redis;
  readonly prefix: string;
  readonly member: Member;
  /** Problems have come or gone. */
  readonly onProblems: (problems: readonly string[]) => void;
  /** The store is new, or was emptied: nobody had announced anything in it. */
  readonly onNewStore: () => void;
  /** Milliseconds, monotonic. Default `performance.now`. */
  readonly now?: () => number;
}

/** What the others knew of this process holds for so long, less than they remember it. */
const validMs = memberTtlMs - announceEveryMs;

/**
 * Tells the store every two seconds that this process is there, and which settings it has; hears the others. What it heard
 * counts for less time than the others count on it: who was stopped, or cut off, asks before it uses the store again.
 */
export class Membership {
  readonly #options: MembershipOptions;
  readonly #id = randomUUID();
  readonly #text: string;
  readonly #now: () => number;
  readonly #timer: NodeJS.Timeout;
  #agreement: Agreement | undefined;
  #validUntilMs = Number.NEGATIVE_INFINITY;
  /** The longest lease that any process had since this one began: one of its writes may still be under way. */
  #longestColdStartMs: number;
  #announcing: Promise<void> | undefined;

  constructor(options: MembershipOptions) {
    this.#options = options;
    this.#text = JSON.stringify(options.member);
    this.#now = options.now ?? (() => performance.now());
    this.#longestColdStartMs = options.member.leaseMs;
    this.#timer = setInterval(
      isolated(() => isolateLate(this.announce().catch(() => {}))),
      announceEveryMs,
    ).unref();
  }

  /** Rejects with the store's fault. One at a time. */
  announce(): Promise<void> {
    this.#announcing ??= this.#announceOnce().finally(() => {
      this.#announcing = undefined;
    });
    return this.#announcing;
  }

  /** Undefined before the store was reached. */
  agreement(): Agreement | undefined {
    return this.#agreement;
  }

  /** How long a new store hands out nothing. Others have announced theirs before it is over. */
  coldStartMs(): number {
    return Math.max(this.#longestColdStartMs, announceEveryMs * 2);
  }

  refusesTags(): RedisFaultWord | undefined {
    return this.#refuses(({ refusesTags }) => refusesTags);
  }

  refusesTokens(): RedisFaultWord | undefined {
    return this.#refuses(({ refusesTokens }) => refusesTokens);
  }

  /** Of what every feature needs. */
  refusesAll(): RedisFaultWord | undefined {
    return this.#refuses(() => false);
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #refuses(does: (agreement: Agreement) => boolean): RedisFaultWord | undefined {
    const agreement = this.#agreement;
    if (agreement === undefined || this.#now() >= this.#validUntilMs) {
      this.announce().catch(() => {});
      return 'settings';
    }
    return agreement.isForeign || does(agreement) ? 'settings' : undefined;
  }

  async #announceOnce(): Promise<void> {
    const { redis, prefix, member, onProblems, onNewStore } = this.#options;
    const askedMs = this.#now();
    const reply = await redis.runScript(announceScript, membersKeys(prefix), [
      this.#id,
      this.#text,
      memberTtlMs,
    ]);
    const register = readRegister(reply);
    const before = this.#agreement;
    const agreement = agree(member, register);
    this.#agreement = agreement;
    this.#validUntilMs = askedMs + validMs;
    this.#longestColdStartMs = Math.max(this.#longestColdStartMs, agreement.coldStartMs);
    if (before?.problems.join() !== agreement.problems.join() && (before ?? agreement).problems.length > 0) {
      onProblems(agreement.problems);
    }
    if (register.isNew) onNewStore();
  }
}

/** The same store for one feature, which may not use it while `refusal` gives a word. */
export function guardRedis(redis: Redis, refusal: () => RedisFaultWord | undefined): Redis {
  const guard = <Args extends unknown[], T>(call: (...args: Args) => Promise<T>) =>
    ((...args) => {
      const word = refusal();
      return word === undefined ? call(...args) : Promise.reject(new RedisUnavailable(word));
    }) as (...args: Args) => Promise<T>;
  return {
    kind: redis.kind,
    command: guard(redis.command.bind(redis)),
    runScript: guard(redis.runScript.bind(redis)),
    runScriptAndWait: guard(redis.runScriptAndWait.bind(redis)),
    subscribe: redis.subscribe.bind(redis),
    status: redis.status.bind(redis),
    state: redis.state.bind(redis),
    ready: redis.ready.bind(redis),
    close: redis.close.bind(redis),
  };
}
