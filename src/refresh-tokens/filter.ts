import type { CanonicalRequest } from '../http/canonical-request.ts';
import type { PathRules } from '../http/path-table.ts';
import { type Answer, isAnswer, isRejection, type Rejection } from '../http/rejection.ts';
import type { FilterContext, Matcher } from '../proxy/filter.ts';
import type { ObservedHooks } from '../upstream/hooks.ts';
import {
  type RefreshTokenContext,
  type RefreshTokenEvent,
  type RefreshTokensOptions,
  refreshTokenEvents,
} from './context.ts';
import { compileTokenEndpoints, hasBody, type TokenEndpoint, type TokenRequest } from './endpoints.ts';
import { issueHooks } from './issue.ts';
import { type NotPlain, readType } from './plain-fields.ts';
import { beginRefresh } from './refresh.ts';
import { refuseNotPlain } from './refusals.ts';
import { RetryQueue } from './retry-queue.ts';
import { beginRevocation } from './revoke.ts';
import { createDigests } from './token-digest.ts';
import { type Candidate, findCandidate } from './token-request.ts';

/** What a request is to the life of refresh tokens, by its head alone. */
export type TokenMatcher = Matcher<TokenRequest> & {
  match(request: CanonicalRequest): TokenRequest | undefined;
};

/**
 * The life cycle of refresh tokens at the edge. Rejections: `token-request-not-plain`, `refresh-token-invalid`,
 * `refresh-token-busy`, `refresh-token-unavailable`, `token-store-unavailable`; within the leeway an answer. In observe
 * mode a refresh that would have been refused goes on, and what it yields is recorded.
 */
export interface RefreshTokens extends TokenMatcher {
  run(
    match: TokenRequest,
    context: Pick<FilterContext, 'request' | 'body' | 'isObserved'> & {
      readonly identity: { readonly subject: string } | undefined;
    },
  ): Promise<ObservedHooks | Answer | Rejection | undefined>;
  stats(): {
    readonly events: Readonly<Record<RefreshTokenEvent, number>>;
    /** Writes that wait for the store to come back. */
    readonly delayedWrites: number;
  };
  /** Gives how many writes the store never took. */
  close(): Promise<number>;
}

/** `paths`: how paths are read (`request`), as for the protected list. */
export function createTokenMatcher(endpoints: readonly TokenEndpoint[], paths: PathRules): TokenMatcher {
  return {
    name: 'refresh-tokens',
    hooksUpstream: true,
    match: compileTokenEndpoints(endpoints, paths),
    wantsBody: ({ refreshes, otherMethod }, request) =>
      refreshes.length > 0 || (otherMethod.length > 0 && hasBody(request)),
    foresee(meaning, request, body) {
      const candidate = candidateOf(request, body, meaning);
      if ('notPlain' in candidate) return notPlainRefusal(meaning, candidate.notPlain);
      if (meaning.refreshes.length === 0) return undefined;
      return candidate.token === undefined
        ? 'the request holds no refresh token'
        : 'the request holds a refresh token; whether it is still good, the store knows';
    },
    describe({ issues, refreshes, revokes }) {
      const kinds = [
        ...(issues.length > 0 ? (['issue'] as const) : []),
        ...(refreshes.length > 0 ? (['exchange'] as const) : []),
        ...(revokes === undefined ? [] : (['revoke'] as const)),
      ];
      return {
        label: 'refresh token',
        text: kinds.map((kind) => kindTexts[kind]).join('; ') || otherMethodText,
        ...(revokes !== undefined && {
          whenOpen: kinds.map((kind) => (kind === 'revoke' ? nobodyRevokes : kindTexts[kind])).join('; '),
        }),
        details: kinds,
      };
    },
  };
}

const kindTexts = {
  issue: 'a refresh token in the answer is remembered',
  exchange: 'a refresh token in the request is used up; refused when it was used, revoked or has expired',
  revoke: "revokes the user's own refresh token",
} as const;
const nobodyRevokes = 'revokes nothing: no row asks for a token, and so nobody is known to be its user';
const otherMethodText = 'by another method than the endpoint: refused where it holds a refresh token';

/** docs/decisions/refresh-token-states.md is what this does, and why. */
export function createRefreshTokens(matcher: TokenMatcher, options: RefreshTokensOptions): RefreshTokens {
  const events = Object.fromEntries(refreshTokenEvents.map((event) => [event, 0])) as Record<
    RefreshTokenEvent,
    number
  >;
  const emit = (event: RefreshTokenEvent) => {
    events[event] += 1;
    options.onEvent?.(event);
  };
  const retries = new RetryQueue({
    onDelayed: () => emit('write-delayed'),
    onLost: () => emit('write-lost'),
  });
  const context: RefreshTokenContext = {
    marginMs: 5000,
    claimMs: 2000,
    replay: 'refuse',
    leewayMs: 0,
    answerBytes: 262_144,
    monotonicNow: performance.now.bind(performance),
    ...options,
    digests: createDigests(options.digestKey),
    retries,
    emit,
  };
  return {
    ...matcher,
    async run(meaning, { request, identity, body = Buffer.alloc(0), isObserved }) {
      const { refreshes, issues, revokes } = meaning;
      const candidate = candidateOf(request, body, meaning);
      if ('notPlain' in candidate) {
        emit('refused-not-plain');
        const refusal = notPlainRefusal(meaning, candidate.notPlain);
        if (!isObserved) return refusal;
        return {
          ...issueHooks(context, [...issues, ...refreshes], request, isObserved),
          observed: refusal,
        };
      }
      const [exact, ...more] = refreshes;
      if (exact !== undefined && candidate.token !== undefined) {
        const endpoints = [exact, ...more] as const;
        const verdict = await beginRefresh(context, endpoints, request, candidate.token, isObserved);
        if (!isObserved || isAnswer(verdict) || !isRejection(verdict)) return verdict;
        return { ...issueHooks(context, refreshes, request, isObserved), observed: verdict };
      }
      // Without an identity (no row protects the endpoint) nobody can say whose wish it is.
      if (revokes !== undefined && identity !== undefined)
        return beginRevocation(context, revokes, identity.subject);
      if (refreshes.length + issues.length === 0) return undefined;
      if (issues.length === 0) emit('exchange-without-token');
      return issueHooks(context, [...issues, ...refreshes], request, isObserved);
    },
    stats: () => ({ events: { ...events }, delayedWrites: retries.waiting }),
    close: () => retries.close(),
  };
}

/** In the words of the endpoint that the request seems to mean. */
function notPlainRefusal({ refreshes, otherMethod, issues }: TokenRequest, why: NotPlain): Rejection {
  const [endpoint] = [...refreshes, ...otherMethod, ...issues];
  return refuseNotPlain(endpoint?.format ?? 'json-api', why);
}

/** What the request gives the shop to refresh; by another method than the endpoint's that is nothing. */
function candidateOf(request: CanonicalRequest, body: Buffer, meaning: TokenRequest): Candidate {
  const { refreshes, otherMethod } = meaning;
  if (refreshes.length > 0) return findCandidate(request, body, refreshes);
  if (otherMethod.length > 0) {
    const candidate = findCandidate(request, body, otherMethod);
    return 'token' in candidate && candidate.token !== undefined ? { notPlain: 'method' } : candidate;
  }
  const type = meaning.issues.length > 0 && hasBody(request) ? readType(request.fields) : undefined;
  return typeof type === 'string' ? { notPlain: type } : { token: undefined };
}
