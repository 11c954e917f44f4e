import { refreshTokens as settings } from '../../../src/config/sections/refresh-tokens.ts';
import type { Method } from '../../../src/http/canonical-request.ts';
import { type Answer, isAnswer, isRejection } from '../../../src/http/rejection.ts';
import type { RefreshTokensOptions } from '../../../src/refresh-tokens/context.ts';
import type { TokenEndpoint } from '../../../src/refresh-tokens/endpoints.ts';
import { createRefreshTokens, createTokenMatcher } from '../../../src/refresh-tokens/filter.ts';
import { MemoryTokenStore } from '../../../src/refresh-tokens/memory-store.ts';
import type { TokenStore } from '../../../src/refresh-tokens/token-store.ts';
import type { UpstreamHooks } from '../../../src/upstream/hooks.ts';
import { runFilter } from '../../harness/run-filter.ts';
import { requestOf } from '../entity-tags/tag-filter.ts';

const shopSettings = settings.parse(undefined);
export const shopEndpoints = shopSettings === false ? [] : shopSettings.endpoints;
export const lifetimeMs = 60_000;
export const answerWithinMs = 50_000;

/** The shop's answer to a sign-in of Ann or to a refresh. */
export const answer = (refreshToken?: string, accessToken?: string) => ({
  kind: 'answered' as const,
  status: 201,
  fields: ['Content-Type', 'application/json'],
  body: Buffer.from(JSON.stringify({ data: { attributes: { refreshToken, accessToken } } })),
});

/** A filter on the memory store. `change` replaces calls of the store. The clock is that of filter and store. */
export function openFilter(
  change: (store: MemoryTokenStore) => Partial<TokenStore> = () => ({}),
  options: Partial<RefreshTokensOptions> = {},
  endpoints: readonly TokenEndpoint[] = shopEndpoints,
) {
  const clock = { now: 0 };
  const now = () => 1_800_000_000_000 + clock.now;
  const store = new MemoryTokenStore({ lifetimeMs, retentionMs: 'keep', now });
  Object.assign(store, change(store));
  const events: string[] = [];
  const filter = createRefreshTokens(createTokenMatcher(endpoints, { ignoredPrefixes: [] }), {
    ...{ store, subjectOf: (accessToken) => accessToken, lifetimeMs, answerWithinMs, marginMs: 5000 },
    monotonicNow: () => clock.now,
    onEvent: (event) => events.push(event),
    ...options,
  });
  const request = (method: Method, path: string, text: string, type: string, isObserved = false) => {
    const body = Buffer.from(text);
    const head = requestOf(method, path, ['Content-Type', type]);
    return runFilter(filter, { ...head, body: { length: body.length } }, undefined, body, isObserved);
  };
  const post = (path: string, text: string, isObserved = false) =>
    request('POST', path, text, 'application/json', isObserved);
  const forwarded = (verdict: Awaited<ReturnType<typeof post>>): UpstreamHooks => {
    if (verdict === undefined || isAnswer(verdict) || isRejection(verdict)) throw new Error('not forwarded');
    return verdict;
  };
  const send = (token: string, isObserved = false) =>
    post('/refresh-tokens', JSON.stringify({ data: { attributes: { refreshToken: token } } }), isObserved);
  return {
    ...{ filter, store, events, clock, request, post, send },
    /** By the form endpoint. */
    sendForm: (token: string) =>
      request('POST', '/token', `refresh_token=${token}`, 'application/x-www-form-urlencoded'),
    /** The hooks of a forwarded refresh, the answer of the proxy, or the name of its refusal. */
    async refresh(token: string, isObserved = false): Promise<UpstreamHooks | Answer | string> {
      const verdict = await send(token, isObserved);
      if (isRejection(verdict)) return verdict.rejection;
      return verdict !== undefined && isAnswer(verdict) ? verdict : forwarded(verdict);
    },
    forward: async (token: string, isObserved = false) => forwarded(await send(token, isObserved)),
    /** A refresh that the shop answers with the next token. */
    async exchange(token: string, next: string, isObserved = false) {
      return forwarded(await send(token, isObserved)).onOutcome(answer(next));
    },
    signIn: async (isObserved = false) => forwarded(await post('/access-tokens', '{}', isObserved)),
    /** A revocation by Ann. */
    revoke: async (which: string) =>
      forwarded(await runFilter(filter, requestOf('DELETE', `/refresh-tokens/${which}`), { subject: 'ann' })),
  };
}
