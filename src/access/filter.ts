import type { Rejection, RejectionName } from '../http/rejection.ts';
import { isRejection } from '../http/rejection.ts';
import type { Filter, Matcher } from '../proxy/filter.ts';
import type { Authenticate, Authenticated } from './authenticate.ts';
import type { ProtectedList, Requirement } from './protected-list.ts';

/** What observe mode lets pass here. Faults of ours and limits always hold. */
const softRejections: ReadonlySet<RejectionName> = new Set([
  'access-token-missing',
  'access-token-invalid',
  'insufficient-scope',
]);

interface AccessTokenMatcher extends Matcher<Requirement> {
  match(request: Parameters<ProtectedList['match']>[0]): Requirement | undefined;
}

/** Protected? By the list as it stands now; a request keeps the row that it met. */
export function createAccessTokenMatcher(list: () => Pick<ProtectedList, 'match'>): AccessTokenMatcher {
  return {
    name: 'access-token',
    match: (request) => list().match(request),
    describe({ scopes }, _request, name) {
      const all = scopes.length > 0 ? ` with the scopes ${scopes.join(', ')}` : '';
      const refusals = `${name('access-token-missing')} without, ${name('access-token-invalid')} with a bad one`;
      return { text: `needs a valid access token${all}; ${refusals}` };
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
    run({ scopes }, { request, isObserved }) {
      const verdict = authenticate(request, scopes);
      if (!isObserved) return verdict;
      return verdict instanceof Promise ? verdict.then(soften) : soften(verdict);
    },
  };
}
