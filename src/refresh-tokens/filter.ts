import { type CanonicalRequest, hasBody } from '../http/canonical-request.ts';
import { type Answer, isAnswer, isRejection, type Rejection } from '../http/rejection.ts';
import type { FilterContext, Matcher } from '../proxy/filter.ts';
import type { PathRules } from '../routes/path-table.ts';
import type { ObservedHooks, UpstreamHooks } from '../upstream/hooks.ts';
import type { RefreshTokenContext, RefreshTokensOptions } from './context.ts';
import { compileTokenEndpoints, type TokenEndpoint, type TokenRequest } from './endpoints.ts';
import { issueHooks } from './issue.ts';
import { beginRefresh } from './refresh.ts';
import { refuseNotPlain } from './refusals.ts';
import { RetryQueue } from './retry-queue.ts';
import { beginRevocation } from './revoke.ts';
import { createDigests } from './token-digest.ts';
import { type Candidate, findCandidate, type NotPlain, readType } from './token-request.ts';

/** Matches requests that may do something to refresh tokens, by their head alone. */
export type TokenMatcher = Matcher<TokenRequest> & {
  match(request: CanonicalRequest): TokenRequest | undefined;
};

/**
 * Enforces the life cycle of refresh tokens. Within the leeway it answers a used token itself. In observe mode a refresh that
 * would have been refused is forwarded, and its new tokens are recorded.
 */
interface RefreshTokens extends TokenMatcher {
  run(
    match: TokenRequest,
    context: Pick<FilterContext, 'request' | 'body' | 'isObserved'> & {
      readonly identity: { readonly subject: string } | undefined;
    },
  ): Promise<ObservedHooks | Answer | Rejection | undefined>;
  /** Writes that wait for the store to come back. */
  delayedWrites(): number;
  /** Resolves to the number of writes that the store never took. */
  close(): Promise<number>;
}

/** `paths`: the settings of `request`, as for the protected list. */
export function createTokenMatcher(endpoints: readonly TokenEndpoint[], paths: PathRules): TokenMatcher {
  return {
    name: 'refresh-tokens',
    hooksUpstream: true,
    skipsPlainReads: endpoints.every(({ method }) => method !== 'GET' && method !== 'HEAD'),
    match: compileTokenEndpoints(endpoints, paths),
    wantsBody: ({ refreshes, otherMethod, endsShown }, request) =>
      refreshes.length + endsShown.length > 0 || (otherMethod.length > 0 && hasBody(request)),
    foresee(meaning, request, body) {
      const tokens = readTokens(request, body, meaning);
      if ('notPlain' in tokens) return refuse(meaning, tokens.notPlain);
      if (tokens.refreshed !== undefined)
        return 'the request has a refresh token; only the store knows whether it is still valid';
      if (tokens.shown !== undefined) return 'the request has a token to revoke';
      return meaning.refreshes.length + meaning.endsShown.length === 0
        ? undefined
        : 'the request has no refresh token';
    },
    describe({ issues, refreshes, revokes, endsShown }) {
      const kinds = [
        ...(issues.length > 0 ? (['issue'] as const) : []),
        ...(refreshes.length > 0 ? (['exchange'] as const) : []),
        ...(endsShown.length > 0 ? (['revoke-shown'] as const) : []),
        ...(revokes === undefined ? [] : (['revoke'] as const)),
      ];
      return {
        label: 'refresh token',
        text: kinds.map((kind) => kindTexts[kind]).join('; ') || otherMethodText,
        ...(revokes !== undefined && {
          whenOpen: kinds.map((kind) => (kind === 'revoke' ? revokesNothing : kindTexts[kind])).join('; '),
        }),
        details: kinds,
      };
    },
  };
}

const kindTexts = {
  issue: 'a refresh token in the answer is remembered',
  exchange: 'a refresh token in the request is used up; refused when it was used, revoked or has expired',
  'revoke-shown': "ends the refresh token in the request, even another user's",
  revoke: "revokes the user's own refresh token",
} as const;
const revokesNothing = 'revokes nothing: no row asks for a token, so its user is not known';
const otherMethodText = "with another method than the endpoint's: refused if it has a refresh token";

/** Creates the filter; docs/decisions/refresh-token-states.md says what it does, and why. */
export function createRefreshTokens(matcher: TokenMatcher, options: RefreshTokensOptions): RefreshTokens {
  const emit = options.onEvent ?? (() => {});
  const retries = new RetryQueue({ emit });
  const context: RefreshTokenContext = {
    ...{ marginMs: 5000, shopTimeoutMs: 10_000, leewayMs: 0, answerBytes: 262_144, replay: undefined },
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
      const tokens = readTokens(request, body, meaning);
      const issue = () => issueHooks(context, [...issues, ...refreshes], request, isObserved);
      if ('notPlain' in tokens) {
        emit('refused-not-plain');
        const refusal = refuse(meaning, tokens.notPlain);
        return isObserved ? { ...issue(), observed: refusal } : refusal;
      }
      const [exact, ...more] = refreshes;
      if (exact !== undefined && tokens.refreshed !== undefined) {
        const verdict = await beginRefresh(context, [exact, ...more], request, tokens.refreshed, isObserved);
        if (!isObserved || isAnswer(verdict) || !isRejection(verdict)) return verdict;
        return { ...issue(), observed: verdict };
      }
      const mayIssue = refreshes.length + issues.length > 0;
      if (tokens.shown !== undefined) {
        const hooks = await beginRevocation(context, { shown: tokens.shown, format: formatOf(meaning) });
        if (isRejection(hooks) || !mayIssue) return hooks;
        return hooks === undefined ? issue() : both(hooks, issue());
      }
      // Without an identity, because no row protects the endpoint, the user is not known.
      if (revokes !== undefined && identity !== undefined)
        return beginRevocation(context, { named: revokes, subject: identity.subject });
      if (!mayIssue) return undefined;
      if (issues.length + meaning.endsShown.length === 0) emit('exchange-without-token');
      return issue();
    },
    delayedWrites: () => retries.waiting,
    close: () => retries.close(),
  };
}

/** The hooks of a revocation that may also issue tokens: to the shop a path below an endpoint may be that endpoint. */
function both(revocation: UpstreamHooks, issue: UpstreamHooks): UpstreamHooks {
  return {
    ...issue,
    ignoreClientAbort: true,
    async onOutcome(outcome) {
      await revocation.onOutcome(outcome);
      return issue.onOutcome(outcome);
    },
  };
}

/** The format of a refusal: that of the endpoint that the request most likely means. */
function formatOf({ endsShown, refreshes, otherMethod, issues }: TokenRequest): TokenEndpoint['format'] {
  const [endpoint] = [...endsShown, ...refreshes, ...otherMethod, ...issues];
  return endpoint?.format ?? 'json-api';
}

function refuse(meaning: TokenRequest, reason: NotPlain): Rejection {
  const endpoints = [...meaning.endsShown, ...meaning.refreshes, ...meaning.otherMethod];
  const expected = endpoints.map(({ fields }) => fields.refreshToken);
  return refuseNotPlain(formatOf(meaning), reason, expected);
}

/** Reads the tokens of a request, one to refresh and one to revoke; two different tokens are not plain. */
function readTokens(
  request: CanonicalRequest,
  body: Buffer,
  meaning: TokenRequest,
): Readonly<Record<'refreshed' | 'shown', string | undefined>> | { readonly notPlain: NotPlain } {
  const refreshed = candidateOf(request, body, meaning);
  if ('notPlain' in refreshed) return refreshed;
  if (meaning.endsShown.length === 0) return { refreshed: refreshed.token, shown: undefined };
  const shown = findCandidate(request, body, meaning.endsShown);
  if ('notPlain' in shown) return shown;
  const isOne = refreshed.token === undefined || shown.token === undefined || shown.token === refreshed.token;
  return isOne ? { refreshed: refreshed.token, shown: shown.token } : { notPlain: 'repeated' };
}

/** Reads the token that the shop would refresh. With another method than the endpoint's a token is not plain. */
function candidateOf(request: CanonicalRequest, body: Buffer, meaning: TokenRequest): Candidate {
  const { refreshes, otherMethod } = meaning;
  if (refreshes.length > 0) return findCandidate(request, body, refreshes);
  if (otherMethod.length > 0) {
    const candidate = findCandidate(request, body, otherMethod);
    return 'token' in candidate && candidate.token !== undefined ? { notPlain: 'method' } : candidate;
  }
  const { issues } = meaning;
  const type = issues.length > 0 && hasBody(request) ? readType(request.fields, issues) : undefined;
  return typeof type === 'object' ? type : { token: undefined };
}
