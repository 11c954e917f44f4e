import type { CanonicalRequest } from '../http/canonical-request.ts';
import type { RejectionName } from '../http/rejection.ts';
import { isRejection } from '../http/rejection.ts';
import type { Filter, Matcher } from '../proxy/filter.ts';
import type { Authenticate } from './authenticate.ts';
import type { ProtectedList, Requirement } from './protected-list.ts';
import { withoutReferredToken } from './token-places.ts';

/** Refusals that observe mode does not enforce here. Faults of shopward and limits are always enforced. */
const softRejections: ReadonlySet<RejectionName> = new Set([
  'access-token-missing',
  'access-token-invalid',
  'access-token-repeated',
  'proof-invalid',
  'cross-site-request',
  'insufficient-scope',
  'not-permitted',
]);

interface AccessTokenMatcher extends Matcher<Requirement> {
  match(request: Parameters<ProtectedList['match']>[0]): Requirement | undefined;
  /** Removes a token from the query in `Referer`: a page that was opened with one must not pass it on. */
  withoutReferredToken(request: CanonicalRequest): CanonicalRequest;
}

/** Matches a request with the present list. A request keeps its row if the list changes meanwhile. */
export function createAccessTokenMatcher(
  list: () => Pick<ProtectedList, 'match'> & Partial<Pick<ProtectedList, 'tokenParameters'>>,
): AccessTokenMatcher {
  return {
    name: 'access-token',
    match: (request) => list().match(request),
    withoutReferredToken(request) {
      const { tokenParameters = [] } = list();
      return tokenParameters.length === 0 ? request : withoutReferredToken(request, tokenParameters);
    },
    // `explain` describes the token by the rows instead.
    describe: () => ({ text: 'needs a valid access token' }),
  };
}

/** A request passes only with a valid access token that has every required scope. */
export function createAccessTokenFilter(
  matcher: AccessTokenMatcher,
  authenticate: Authenticate,
): Filter<Requirement> & AccessTokenMatcher {
  const soften = (verdict: Awaited<ReturnType<Authenticate>>) =>
    isRejection(verdict) && softRejections.has(verdict.rejection) ? { observed: verdict } : verdict;
  return {
    ...matcher,
    run(requirement, { request, isObserved, isProven }) {
      const verdict = authenticate(request, requirement, isProven);
      if (!isObserved) return verdict;
      return verdict instanceof Promise ? verdict.then(soften) : soften(verdict);
    },
  };
}
