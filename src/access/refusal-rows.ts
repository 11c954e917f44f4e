import { outage, refusal, type WrittenRow } from '../http/rejection-row.ts';

/** Refusals that concern the sender (contract: Authentication; RFC 6750, RFC 9449). */
export const accessRefusals = {
  'access-token-missing': refusal(401, 'Missing access token.', '002'),
  'access-token-invalid': refusal(401, 'Invalid access token.', '001'),
  'access-token-repeated': refusal(400, 'The access token must be sent in one way only.'),
  'cross-site-request': refusal(403, 'A change with a cookie must come from a page of this site.'),
  'insufficient-scope': refusal(403, 'The access token does not carry a required scope.'),
  'proof-invalid': refusal(
    401,
    'The request does not prove that its sender has the key of the access token.',
  ),
  'not-permitted': refusal(403, 'The access token does not permit this resource.'),
  'keys-unavailable': outage(503, 'Access tokens cannot be verified at the moment.'),
} as const satisfies Record<string, WrittenRow>;
