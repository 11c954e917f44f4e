import { type Rejection, reject } from '../rejections/rejection.ts';
import { rejectionTable } from '../rejections/table.ts';
import type { Answer } from '../request/answer.ts';
import type { NotPlain } from './plain-request.ts';
import type { TokenEndpoint } from './token-endpoints.ts';

export type RefusalReason = 'used' | 'revoked' | 'expired' | 'in-exchange';

const { detail: plainRequest } = rejectionTable['token-request-not-plain'];

/** Seconds after which a client may try again when the store is away. */
const retryAfterSeconds = 1;

/** The refusal of an exchange, in the words that the endpoint's clients understand. */
export function refuseExchange(
  format: TokenEndpoint['format'],
  reason: RefusalReason,
  remainingMs?: number,
): Rejection {
  return reject('refresh-token-invalid', {
    reason,
    // Not in vain only where the outcome of another exchange is still open.
    ...(remainingMs !== undefined && { retryAfterSeconds: Math.ceil(remainingMs / 1000) }),
    ...(format === 'form' && {
      answer: oauthError(400, 'invalid_grant', 'The refresh token is invalid, expired or revoked.'),
    }),
  });
}

/** A request that two readers could read in two ways. */
export function refuseNotPlain(format: TokenEndpoint['format'], reason: NotPlain): Rejection {
  return reject('token-request-not-plain', {
    reason,
    ...(format === 'form' && { answer: oauthError(400, 'invalid_request', plainRequest) }),
  });
}

/** The store is away: nothing is forwarded, since nothing could be promised. */
export function refuseUnknown(format: TokenEndpoint['format']): Rejection {
  return reject('token-store-unavailable', {
    retryAfterSeconds,
    ...(format === 'form' && {
      answer: oauthError(
        503,
        'temporarily_unavailable',
        'The state of this token cannot be checked at the moment.',
      ),
    }),
  });
}

/** RFC 6749 section 5.2. */
function oauthError(status: number, error: string, description: string): Answer {
  const body = JSON.stringify({ error, error_description: description });
  return {
    status,
    fields: [
      'Content-Type',
      'application/json;charset=UTF-8',
      'Content-Length',
      String(Buffer.byteLength(body)),
      'Cache-Control',
      'no-store',
      'Pragma',
      'no-cache',
    ],
    body,
  };
}
