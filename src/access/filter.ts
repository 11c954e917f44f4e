import type { CanonicalRequest } from '../http/canonical-request.ts';
import type { Rejection, RejectionName } from '../http/rejection.ts';
import { isRejection } from '../http/rejection.ts';
import type { Filter, Matcher } from '../proxy/filter.ts';
import type { Authenticate, Authenticated } from './authenticate.ts';
import type { ProtectedList, Requirement } from './protected-list.ts';
import { headerAlone, withoutReferredToken } from './token-places.ts';

/** What observe mode lets pass here. Faults of ours and limits always hold. */
const softRejections: ReadonlySet<RejectionName> = new Set([
  'access-token-missing',
  'access-token-invalid',
  'access-token-repeated',
  'cross-site-request',
  'insufficient-scope',
]);

interface AccessTokenMatcher extends Matcher<Requirement> {
  match(request: Parameters<ProtectedList['match']>[0]): Requirement | undefined;
  /** A page that was opened with a token in its query must not hand it on. */
  withoutReferredToken(request: CanonicalRequest): CanonicalRequest;
}

/** Protected? By the list as it stands now; a request keeps the row that it met. */
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
    describe({ scopes, tokenIn = headerAlone }, _request, name) {
      const all = scopes.length > 0 ? ` with the scopes ${scopes.join(', ')}` : '';
      const refusals = `${name('access-token-missing')} without, ${name('access-token-invalid')} with a bad one`;
      const places = tokenIn === headerAlone ? '' : `, in one of ${tokenIn.join(', ')}`;
      return { text: `needs a valid access token${all}${places}; ${refusals}` };
    },
  };
}

/** Only with a valid access token that carries every scope. */
export function createAccessTokenFilter(
  matcher: AccessTokenMatcher,
  authenticate: Authenticate,
): Filter<Requirement> & AccessTokenMatcher {
  const soften = (verdict: Authenticated | Rejection) =>
    isRejection(verdict) && softRejections.has(verdict.rejection) ? { observed: verdict } : verdict;
  return {
    ...matcher,
    run(requirement, { request, isObserved }) {
      const verdict = authenticate(request, requirement);
      if (!isObserved) return verdict;
      return verdict instanceof Promise ? verdict.then(soften) : soften(verdict);
    },
  };
}
