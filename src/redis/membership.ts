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
  recordForms,
  rollbackMs,
} from './members.ts';
import type { Redis } from './redis.ts';

interface MembershipOptions {
  readonly redis: Redis;
  readonly prefix: string;
  readonly member: Member;
  /** Called when the problems have changed. */
  readonly onProblems: (problems: readonly string[]) => void;
  /** Called when the store is new or was emptied: no process was announced in it. */
  readonly onNewStore: () => void;
  /** Milliseconds, monotonic. Default `performance.now`. */
  readonly now?: () => number;
}

/** An agreement is valid for less time than the others remember this process. */
const validMs = memberTtlMs - announceEveryMs;

/**
 * Announces this process and its settings in the store every two seconds, and reads those of the others. An agreement expires
 * before the others forget this process: one that was suspended, or cut off, announces itself again before it uses the store.
 */
export class Membership {
  readonly #options: MembershipOptions;
  readonly #id = randomUUID();
  readonly #text: string;
  readonly #now: () => number;
  readonly #timer: NodeJS.Timeout;
  #agreement: Agreement | undefined;
  #validUntilMs = Number.NEGATIVE_INFINITY;
  /** The longest lease that any process has had since the start of this one: a write with it may still be under way. */
  #longestColdStartMs: number;
  #announcing: Promise<void> | undefined;

  constructor(options: MembershipOptions) {
    this.#options = options;
    this.#text = JSON.stringify({ forms: recordForms, ...options.member });
    this.#now = options.now ?? (() => performance.now());
    this.#longestColdStartMs = options.member.leaseMs;
    this.#timer = setInterval(
      isolated(() => isolateLate(this.announce().catch(() => {}))),
      announceEveryMs,
    ).unref();
  }

  /** Announces this process once; calls meanwhile get the same promise. Rejects with `RedisUnavailable`. */
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

  /** Milliseconds of a cold start: at least two announcements, so that the leases of all others are known before it ends. */
  coldStartMs(): number {
    return Math.max(this.#longestColdStartMs, announceEveryMs * 2);
  }

  refusesTags(): RedisFaultWord | undefined {
    return this.#refuses(({ refusesAll }) => refusesAll);
  }

  /** The form in which records are written, as far as this process knows. */
  form(): number {
    return this.#agreement?.form ?? recordForms.oldest;
  }

  /** Whether another process lacks this line of `tracked`. */
  isUntracked(line: string): boolean {
    return this.#agreement?.untracked.includes(line) ?? true;
  }

  refusesTokens(): RedisFaultWord | undefined {
    return this.#refuses(({ refusesTokens, refusesAll }) => refusesTokens || refusesAll);
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
    return does(agreement) ? 'settings' : undefined;
  }

  async #announceOnce(): Promise<void> {
    const { redis, prefix, member, onProblems, onNewStore } = this.#options;
    const askedMs = this.#now();
    const reply = await redis.runScript(announceScript, membersKeys(prefix), [
      this.#id,
      this.#text,
      memberTtlMs,
      rollbackMs,
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

/** The store for one feature: its calls are rejected while `refusal` gives a word. */
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
    status: redis.status.bind(redis),
    state: redis.state.bind(redis),
    ready: redis.ready.bind(redis),
    close: redis.close.bind(redis),
  };
}
