import { type Answer, type Rejection, reject, rejectionTable } from '../http/rejection.ts';
import type { TokenEndpoint } from './endpoints.ts';
import type { NotPlain } from './plain-fields.ts';

const { detail: plainRequest } = rejectionTable['token-request-not-plain'];

/** Seconds after which a client may try again when the store is away. */
const retryAfterSeconds = 1;

/** In vain for good: the refusal in the words that the endpoint's clients understand. */
export function refuseRefresh(
  format: TokenEndpoint['format'],
  reason: 'used' | 'revoked' | 'expired',
): Rejection {
  const description = 'The refresh token is invalid, expired or revoked.';
  return reject('refresh-token-invalid', {
    reason,
    ...inFormat(format, 400, 'invalid_grant', description),
  });
}

/** A request that two readers could read in two ways. */
export function refuseNotPlain(format: TokenEndpoint['format'], reason: NotPlain): Rejection {
  return reject('token-request-not-plain', {
    reason,
    ...inFormat(format, 400, 'invalid_request', plainRequest),
  });
}

/**
 * Not now. A refresh under way is over soon, or takes as long again: who waits as long as it has lasted asks seldom. Where
 * nobody knows what became of one, only the end of its claim helps. `holdMs`: how long a confirmed claim holds.
 */
export function refuseForNow(
  format: TokenEndpoint['format'],
  { remainingMs, isIndeterminate }: { readonly remainingMs: number; readonly isIndeterminate: boolean },
  holdMs: number,
): Rejection {
  const restSeconds = Math.max(1, Math.ceil(remainingMs / 1000));
  const lastedSeconds = Math.max(1, Math.floor((holdMs - remainingMs) / 1000));
  // A claim that is not confirmed yet has little left, and has lasted for a moment only.
  const askAgainSeconds = restSeconds <= 2 ? 1 : Math.min(restSeconds, lastedSeconds);
  return reject(isIndeterminate ? 'refresh-token-unavailable' : 'refresh-token-busy', {
    reason: isIndeterminate ? 'indeterminate' : 'in-exchange',
    retryAfterSeconds: isIndeterminate ? restSeconds : askAgainSeconds,
    ...inFormat(format, 503, unavailable, 'Another exchange of this refresh token is under way.'),
  });
}

/** The store is away: nothing is forwarded, since nothing could be promised. */
export function refuseUnknown(format: TokenEndpoint['format']): Rejection {
  return reject('token-store-unavailable', {
    retryAfterSeconds,
    ...inFormat(format, 503, unavailable, 'The state of this token cannot be checked at the moment.'),
  });
}

const unavailable = 'temporarily_unavailable';

/** Where the endpoint speaks OAuth, the error of RFC 6749 section 5.2. */
function inFormat(
  format: TokenEndpoint['format'],
  status: number,
  error: string,
  description: string,
): { readonly answer?: Answer } {
  if (format !== 'form') return {};
  const body = JSON.stringify({ error, error_description: description });
  const answer = {
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
  return { answer };
}
