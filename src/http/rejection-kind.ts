import type { RejectionName } from './rejection.ts';

/**
 * The cause of a rejection. `refusal`: a rule or a limit turned the request away. `outage`: something that shopward
 * needs is broken, and the client did nothing wrong. `answer`: the honest answer of an endpoint of ours, such as
 * "there is no such URL".
 */
type RejectionKind = 'refusal' | 'outage' | 'answer';

/** Every name is listed, so that a new one does not compile until it has a kind. */
const rejectionKinds: Readonly<Record<RejectionName, RejectionKind>> = {
  'bad-request': 'refusal',
  'bad-request-target': 'refusal',
  'bad-request-fields': 'refusal',
  'bad-host': 'refusal',
  'unexpected-body': 'refusal',
  'method-override': 'refusal',
  'lenient-spelling': 'refusal',
  'resource-id-missing': 'refusal',
  'method-not-allowed': 'refusal',
  'request-timeout': 'refusal',
  'payload-too-large': 'refusal',
  'target-too-long': 'refusal',
  'expectation-failed': 'refusal',
  'fields-too-large': 'refusal',
  'transfer-encoding-unsupported': 'refusal',
  'http-version-unsupported': 'refusal',
  'access-token-missing': 'refusal',
  'access-token-invalid': 'refusal',
  'access-token-repeated': 'refusal',
  'cross-site-request': 'refusal',
  'insufficient-scope': 'refusal',
  'keys-unavailable': 'outage',
  'if-match-missing': 'refusal',
  'if-match-invalid': 'refusal',
  'collection-write': 'refusal',
  'tag-store-unavailable': 'outage',
  'resource-busy': 'refusal',
  'url-missing': 'answer',
  'url-not-found': 'answer',
  'refresh-token-invalid': 'refusal',
  'token-request-not-plain': 'refusal',
  'token-answer-unreadable': 'outage',
  'refresh-token-busy': 'refusal',
  'refresh-token-unavailable': 'outage',
  'token-store-unavailable': 'outage',
  'upstream-unreachable': 'outage',
  'upstream-invalid': 'outage',
  'upstream-timeout': 'outage',
  'rate-limited': 'refusal',
  overloaded: 'refusal',
  'internal-error': 'outage',
};

export const rejectionNames = Object.keys(rejectionKinds) as readonly RejectionName[];

export function rejectionKind(name: RejectionName): RejectionKind {
  return rejectionKinds[name];
}
