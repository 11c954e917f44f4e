import { type Rejection, reject } from '../http/rejection.ts';
import { readTokenPart } from './bearer-credentials.ts';
import { conditionTexts, findUnmet, type RowConditions } from './claim-conditions.ts';
import type { Requirement } from './protected-list.ts';
import type { TokenIdentity } from './token-claims.ts';

export type Asked = Pick<Requirement, 'scopes' | 'anyScopes' | 'conditions' | 'observedConditions' | 'proof'>;

/** The first set of scopes that the token does not satisfy: all of `scopes`, or one of each `anyScopes`. Undefined: none. */
export function missingScopes(
  { scopes, anyScopes = [] }: Asked,
  { scopes: given }: TokenIdentity,
): readonly string[] | undefined {
  const lacks = (scope: string) => !given.includes(scope);
  return scopes.some(lacks) ? scopes : anyScopes.find((any) => any.every(lacks));
}

/** Refuses a token whose claims do not satisfy every condition. `reason` names the condition, never a value. */
export function refuseClaims(
  conditions: readonly RowConditions[] | undefined,
  token: string,
  identity: TokenIdentity,
): Rejection | undefined {
  if (conditions === undefined || conditions.length === 0) return undefined;
  // A remembered JSON Web Token keeps no claims, since few rows have conditions: they are read again.
  const claims = identity.claims ?? readTokenPart(token, 1) ?? {};
  const unmet = findUnmet(conditions, claims);
  return unmet && reject('not-permitted', { reason: `require.${unmet.name}`, sender: identity });
}

/** What a row requires of a valid token, such as ` with the scopes a, b and a claim sub that is {id}`; empty: nothing. */
export function requirementText({ scopes, anyScopes = [], conditions = [], proof }: Asked): string {
  const all = scopes.length > 0 ? [`the scopes ${scopes.join(', ')}`] : [];
  const any = anyScopes.map((one) => ({ anyScopes: one }));
  const claims = conditions.map((row) => ({ require: row.conditions }));
  const needs = [...conditionTexts({ proof }), ...all, ...[...any, ...claims].flatMap(conditionTexts)];
  return needs.length > 0 ? ` with ${needs.join(' and ')}` : '';
}
