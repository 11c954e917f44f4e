import { type Answer, type Rejection, reject, rejectionTable } from '../http/rejection.ts';
import type { TokenEndpoint } from './endpoints.ts';
import type { NotPlain } from './token-request.ts';

/** Seconds of Retry-After while the store is away. */
const retryAfterSeconds = 1;

/** The refresh token will never work again. As RFC 6749 `invalid_grant` where the endpoint speaks OAuth. */
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

/** Another parser may read the request in another way. Names the field that was expected. */
export function refuseNotPlain(
  format: TokenEndpoint['format'],
  reason: NotPlain,
  expected: readonly string[] = [],
): Rejection {
  const isType = reason === 'content-type' || reason === 'content-coding';
  const name = isType ? 'token-request-type' : 'token-request-not-plain';
  const { status, detail } = rejectionTable[name];
  const names = [...new Set(expected)].map((each) => `\`${each}\``);
  const hint = names.length === 0 ? undefined : `The field of the token is ${names.join(' or ')}.`;
  const text = hint === undefined ? detail : `${detail} ${hint}`;
  return reject(name, {
    reason,
    ...(hint !== undefined && { hint }),
    ...inFormat(format, status, 'invalid_request', text),
  });
}

/**
 * Another refresh of the token is under way, or its outcome is indeterminate. Retry-After is as long as that refresh has
 * lasted, so that clients ask seldom; after an indeterminate outcome it is the end of its claim. `holdMs`: how long a
 * confirmed claim holds.
 */
export function refuseForNow(
  format: TokenEndpoint['format'],
  { remainingMs, isIndeterminate }: { readonly remainingMs: number; readonly isIndeterminate: boolean },
  holdMs: number,
): Rejection {
  const restSeconds = Math.max(1, Math.ceil(remainingMs / 1000));
  const lastedSeconds = Math.max(1, Math.floor((holdMs - remainingMs) / 1000));
  const askAgainSeconds = Math.min(restSeconds, lastedSeconds);
  return reject(isIndeterminate ? 'refresh-token-unavailable' : 'refresh-token-busy', {
    reason: isIndeterminate ? 'indeterminate' : 'in-exchange',
    retryAfterSeconds: isIndeterminate ? restSeconds : askAgainSeconds,
    ...inFormat(format, 503, unavailable, 'Another exchange of this refresh token is under way.'),
  });
}

/** The store is away: nothing is forwarded unchecked. */
export function refuseUnknown(format: TokenEndpoint['format']): Rejection {
  return reject('token-store-unavailable', {
    retryAfterSeconds,
    ...inFormat(format, 503, unavailable, 'The state of this token cannot be checked at the moment.'),
  });
}

const unavailable = 'temporarily_unavailable';

/** For an endpoint of `format: form` the error of RFC 6749 section 5.2; otherwise nothing. */
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
