import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { networkOf } from '../http/peer.ts';
import { type Rejection, reject } from '../http/rejection.ts';
import { type Component, counter, gauge, healthOf, total } from '../lib/component.ts';
import type { Eventually } from '../lib/eventually.ts';
import { FairSemaphore, type Permit } from '../lib/fair-semaphore.ts';
import { isolated } from '../lib/faults.ts';
import { isObject } from '../lib/json.ts';
import { createAgent, faultText, type ProviderError, postForm } from './provider-fetch.ts';
import {
  type ClaimRules,
  type TokenRefusal,
  type VerifiedToken,
  validateClaims,
  validateTimes,
} from './token-claims.ts';
import { readConfirmation } from './token-kind.ts';
import {
  compileClaimRules,
  refuseToken,
  type TokenVerdict,
  type TokenVerifierOptions,
} from './token-verifier.ts';

/** How an issuer is asked. Exported for its tests. */
export interface IntrospectionOptions
  extends Omit<TokenVerifierOptions, 'algorithms' | 'keySource' | 'issuer'> {
  /** If an answer has `iss`, it must equal this. Unset: not checked. */
  readonly issuer?: string | undefined;
  /** Whether a token is refused if the answer has no `token_type`. */
  readonly requireTokenType: boolean;
  /** Milliseconds for which an active token is remembered, at most until its `exp`; 0: the endpoint is asked for each request. */
  readonly ttlMs: number;
  readonly url: string;
  /** Shopward's own credentials at the endpoint. */
  readonly credentials: { readonly id: string; readonly secret: string };
  /** Milliseconds for a connection and the answer; half of them if a client without a connection waits for one. */
  readonly timeoutMs: number;
  readonly inactiveTtlMs: number;
  readonly maxTokens: number;
  /**
   * Maximum number of connections for unknown tokens. Tokens that were active when last asked have a quarter as many of
   * their own. One client gets at most half.
   */
  readonly connections: number;
  /** Maximum number of tokens of a pool that are asked about or wait at once; others are refused as `overloaded`. */
  readonly maxAsking: number;
  readonly monotonicNow?: () => number;
  /** Called after each question, with the reason if the endpoint counts as away. Must not throw. */
  readonly onAnswer?: (error: ProviderError | undefined) => void;
}

type Pool = ReturnType<typeof createPool>;
type Verdict = { readonly verified: VerifiedToken } | { readonly refusal: TokenRefusal };
type Remembered = Verdict & { readonly untilMs: number };

/** Longest answer, in bytes; the usual one has a few hundred. */
const maxAnswerBytes = 64 * 1024;
/**
 * After this many failed questions in a row the endpoint counts as away: then each client may ask only as many questions as
 * its share of connections. Questions are still asked, because the endpoint, or a firewall in front of it, may leave only
 * certain tokens unanswered, and a client that sends these must not stop the others.
 */
const failuresOfAnOutage = 5;

/**
 * Verifies tokens by asking their issuer (RFC 7662), who alone knows what an opaque token means. A verdict is remembered for
 * a short time under the token's digest. Active tokens are kept apart from refused ones, so that a client cannot evict good
 * tokens by sending bad ones. Without an answer the request is refused as `keys-unavailable`. docs/decisions/introspection.md
 * has the states.
 */
export class TokenIntrospector {
  readonly #options: IntrospectionOptions;
  readonly #agedRules: ClaimRules;
  /** Without `iat` the age is not checked: the issuer has just confirmed the token. */
  readonly #agelessRules: ClaimRules;
  /** Unknown tokens, and tokens that were active when last asked: a flood of unknown ones does not delay the others. */
  readonly #pools: { readonly unknown: Pool; readonly known: Pool };
  readonly #active: LRUCache<string, Remembered>;
  readonly #refused: LRUCache<string, Remembered>;
  readonly #underWay = new Map<string, Promise<TokenVerdict>>();
  readonly #monotonicNow: () => number;
  readonly #count = { questions: 0, failures: 0 };
  #authorization: string;
  #lastError: ProviderError | undefined;
  #failuresInARow = 0;
  #hasAnswered = false;
  #awayFor: ProviderError | undefined;
  /** Counts calls of `forgetAll`: an answer to an earlier question is not remembered. */
  #generation = 0;

  constructor(options: IntrospectionOptions) {
    const { url, maxTokens: max, connections, maxAsking } = options;
    this.#options = options;
    this.#agedRules = compileClaimRules(options);
    this.#agelessRules = { ...this.#agedRules, maxTokenAgeMs: undefined };
    this.#active = new LRUCache({ max });
    this.#refused = new LRUCache({ max });
    this.#pools = {
      unknown: createPool(url, connections, maxAsking),
      known: createPool(url, Math.ceil(connections / 4), maxAsking),
    };
    this.#monotonicNow = options.monotonicNow ?? (() => performance.now());
    this.#authorization = basicCredentials(options.credentials.id, options.credentials.secret);
  }

  /**
   * Returns a promise if the issuer must be asked; it rejects only for a bug in shopward. `clientAddress`: the sender, for
   * its share of connections.
   */
  verify(token: string, clientAddress = ''): Eventually<TokenVerdict> {
    const digest = hash('sha256', token, 'base64url');
    const active = this.#active.get(digest);
    const known = active ?? this.#refused.get(digest);
    if (known !== undefined && this.#monotonicNow() < known.untilMs) return this.#conclude(known);
    const shared = this.#underWay.get(digest);
    if (shared !== undefined) return shared;
    const pool = active === undefined ? this.#pools.unknown : this.#pools.known;
    const isAway = pool.failuresInARow >= failuresOfAnOutage;
    const permit = pool.permits.acquire(networkOf(clientAddress), isAway, this.#options.timeoutMs);
    if (permit === undefined)
      return isAway ? unavailable() : reject('overloaded', { reason: 'verifications', retryAfterSeconds: 1 });
    const question = this.#askWithPermit(token, digest, pool, permit).finally(() => {
      permit.release();
      if (this.#underWay.get(digest) === question) this.#underWay.delete(digest);
    });
    this.#underWay.set(digest, question);
    return question;
  }

  forgetAll(): void {
    this.#generation++;
    this.#active.clear();
    this.#refused.clear();
    this.#underWay.clear();
  }

  useSecret(secret: string): void {
    this.#authorization = basicCredentials(this.#options.credentials.id, secret);
  }

  readonly status = () => ({
    ...this.#count,
    active: this.#active.size,
    refused: this.#refused.size,
    lastError: this.#lastError,
    awayFor: this.#awayFor,
  });

  async close(): Promise<void> {
    this.forgetAll();
    for (const { agent } of [this.#pools.unknown, this.#pools.known]) agent.destroy();
  }

  async #askWithPermit(
    token: string,
    digest: string,
    pool: Pool,
    { granted }: Permit,
  ): Promise<TokenVerdict> {
    const { timeoutMs } = this.#options;
    if (granted === undefined) return this.#ask(token, digest, pool, timeoutMs);
    const startedMs = performance.now();
    const isGranted = await granted;
    const leftMs = timeoutMs - (performance.now() - startedMs);
    return isGranted && leftMs > 0 ? this.#ask(token, digest, pool, leftMs) : unavailable();
  }

  async #ask(token: string, digest: string, pool: Pool, leftMs: number): Promise<TokenVerdict> {
    const { url, timeoutMs, ttlMs, inactiveTtlMs, now, onAnswer, onVerified } = this.#options;
    const startedIn = this.#generation;
    this.#count.questions++;
    const { deadline, clear } = startDeadline(leftMs, timeoutMs / 2, () => pool.permits.isAwaited);
    const answer = await postForm(pool.agent, {
      ...{ url, deadline, authorization: this.#authorization, maxBytes: maxAnswerBytes },
      form: new URLSearchParams({ token, token_type_hint: 'access_token' }).toString(),
    });
    clear();
    const verdict = 'error' in answer ? answer : this.#read(answer.value);
    const error = 'error' in verdict ? verdict.error : undefined;
    if (error === 'timeout' && leftMs < timeoutMs / 2) this.#count.failures++;
    else this.#note(error, pool);
    onAnswer?.(this.#awayFor);
    if ('error' in verdict) return unavailable();
    const isGood = 'verified' in verdict;
    const lastsMs = isGood ? verdict.verified.identity.expiresAtMs - now() : inactiveTtlMs;
    const untilMs = this.#monotonicNow() + Math.min(ttlMs, lastsMs);
    if (untilMs > this.#monotonicNow() && startedIn === this.#generation) {
      (isGood ? this.#active : this.#refused).set(digest, { ...verdict, untilMs });
      (isGood ? this.#refused : this.#active).delete(digest);
    }
    if (isGood) onVerified?.(verdict.verified.identity);
    return this.#conclude(verdict);
  }

  #read(answer: unknown): Verdict | { readonly error: ProviderError } {
    if (!isObject(answer) || typeof answer.active !== 'boolean') return { error: 'malformed' };
    if (!answer.active) return { refusal: 'inactive' };
    const { requireTokenType, ttlMs, issuer, now } = this.#options;
    // RFC 9449 section 6.2: `token_type` DPoP counts only for a token that is bound to a key.
    const isBound = readConfirmation(answer.cnf)?.by === 'dpop';
    if (!isNamedAccess(answer.token_type, requireTokenType, isBound)) return { refusal: 'other-kind' };
    // RFC 7662 section 2.2: `exp` and `iss` are optional. The issuer has just confirmed the token.
    const exp = answer.exp ?? (now() + Math.max(ttlMs, leastLifetimeMs)) / 1000;
    const iss = answer.iss ?? issuer;
    const rules = answer.iat === undefined ? this.#agelessRules : this.#agedRules;
    const verified = validateClaims({ ...answer, exp, iss }, rules, now());
    return typeof verified === 'string' ? { refusal: verified } : { verified };
  }

  /** Checks a remembered verdict again. */
  #conclude(verdict: Verdict): TokenVerdict {
    if ('refusal' in verdict) return refuseToken(verdict.refusal);
    const rules = verdict.verified.issuedAtMs === undefined ? this.#agelessRules : this.#agedRules;
    const refusal = validateTimes(verdict.verified, rules, this.#options.now());
    return refusal === undefined ? verdict.verified.identity : refuseToken(refusal);
  }

  /**
   * One failure may be the fault of its token. Several in a row are the endpoint's fault, and so is the first failure of an
   * endpoint that has never answered.
   */
  #note(error: ProviderError | undefined, pool: Pool): void {
    this.#lastError = error;
    if (error === undefined) {
      pool.failuresInARow = this.#failuresInARow = 0;
      this.#hasAnswered = true;
      this.#awayFor = undefined;
      return;
    }
    this.#count.failures++;
    pool.failuresInARow++;
    this.#failuresInARow++;
    if (!this.#hasAnswered || this.#failuresInARow >= failuresOfAnOutage) this.#awayFor = error;
  }
}

/** If an answer has no `exp`, the token counts as valid for at least this many milliseconds. Its WebSockets end after that. */
const leastLifetimeMs = 60_000;

/** Whether `token_type` is that of an access token. A refresh token is active too, and many issuers give it no type. */
function isNamedAccess(type: unknown, isRequired: boolean, isBound: boolean): boolean {
  if (typeof type !== 'string') return type === undefined && !isRequired;
  return /^(bearer|access_token)$/i.test(type) || (isBound && /^dpop$/i.test(type));
}

/** Aborts after `leftMs`, or after `shareMs` if `isAwaited` by then, so that the waiting client has time left for its answer. */
function startDeadline(leftMs: number, shareMs: number, isAwaited: () => boolean) {
  const controller = new AbortController();
  const abort = () => controller.abort();
  const end = setTimeout(abort, leftMs);
  const abortIfAwaited = isolated(() => isAwaited() && abort());
  const share = setTimeout(abortIfAwaited, shareMs);
  const clear = () => {
    clearTimeout(end);
    clearTimeout(share);
  };
  return { deadline: controller.signal, clear };
}

function createPool(url: string, connections: number, capacity: number) {
  const agent = createAgent(url, { keepAlive: true, maxSockets: connections });
  return { agent, permits: new FairSemaphore({ permits: connections, capacity }), failuresInARow: 0 };
}

/** RFC 6749 section 2.3.1: id and secret are form-encoded, then joined as in RFC 7617. */
function basicCredentials(id: string, secret: string): string {
  const encode = (text: string) => new URLSearchParams({ _: text }).toString().slice(2);
  return `Basic ${Buffer.from(`${encode(id)}:${encode(secret)}`).toString('base64')}`;
}

export function introspectionComponent(introspector: TokenIntrospector): Component {
  const { status } = introspector;
  const questionCount = () => status().questions;
  return {
    name: 'introspection',
    title: 'Introspection',
    reload: () => introspector.forgetAll(),
    close: () => introspector.close(),
    health() {
      const { questions, failures, active, lastError, awayFor } = status();
      const reasons = awayFor === undefined ? [] : [`introspection of access tokens: ${faultText(awayFor)}`];
      const ofOneToken =
        lastError === undefined ? '' : `, but not for the last token: ${faultText(lastError)}`;
      return healthOf(reasons, {
        text: reasons[0] ?? (questions === 0 ? 'no question yet' : `the issuer answers${ofOneToken}`),
        details: [total('questions', questions), total('failures', failures), total('active tokens', active)],
      });
    },
    metrics: [
      counter('shopward_introspections', 'Questions to the introspection endpoint.', questionCount),
      counter('shopward_introspection_failures', 'Questions that failed.', () => status().failures),
      gauge('shopward_introspected_tokens', 'Active tokens in memory.', 'sum', () => status().active),
    ],
  };
}

function unavailable(): Rejection {
  return reject('keys-unavailable', { reason: 'introspection', retryAfterSeconds: 1 });
}
