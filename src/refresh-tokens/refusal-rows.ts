import { outage, refusal, type WrittenRow } from '../http/rejection-row.ts';

/** Refusals of refresh tokens (contract: Tokens). */
export const refreshTokenRefusals = {
  'refresh-token-invalid': refusal(401, 'Failed to refresh token.', '004'),
  'token-request-type': refusal(
    415,
    'A token request is uncoded JSON or application/x-www-form-urlencoded, in UTF-8.',
  ),
  'token-request-not-plain': refusal(
    400,
    'A token request has each field once, in the body, by its exact name; other names consist of letters, digits, `_`, `-` and dots.',
  ),
  'token-answer-unreadable': outage(502, 'The upstream answered with tokens that cannot be read.'),
  'refresh-token-busy': refusal(503, 'This refresh token is being exchanged by another request.'),
  'refresh-token-unavailable': outage(503, 'Whether this refresh token was exchanged is not known yet.'),
  'token-store-unavailable': outage(503, 'The state of this token cannot be checked at the moment.'),
} as const satisfies Record<string, WrittenRow>;
