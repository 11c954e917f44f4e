import { type Rejection, type RejectionName, reject, rejectionTable } from '../http/rejection.ts';
import type { TokenEndpoint } from './endpoints.ts';
import type { NotPlain } from './token-request.ts';

type Format = TokenEndpoint['format'];

/** A refusal in the format of its endpoint: JSON:API, or the error of RFC 6749 section 5.2. */
function inFormat(
  format: Format,
  name: RejectionName,
  more: Omit<Rejection, 'rejection' | 'answer'>,
  [status, error, description]: readonly [number, string, string],
): Rejection {
  if (format === 'json-api') return reject(name, more);
  const body = JSON.stringify({ error, error_description: description });
  const fields = [
    ...['Content-Type', 'application/json;charset=UTF-8', 'Content-Length', String(Buffer.byteLength(body))],
    ...['Cache-Control', 'no-store', 'Pragma', 'no-cache'],
  ];
  return reject(name, { ...more, answer: { status, fields, body } });
}

const unavailable = [503, 'temporarily_unavailable'] as const;

/** Final: the refresh token is used, revoked or expired. */
export function refuseRefresh(format: Format, reason: 'used' | 'revoked' | 'expired'): Rejection {
  const description = 'The refresh token is invalid, expired or revoked.';
  return inFormat(format, 'refresh-token-invalid', { reason }, [400, 'invalid_grant', description]);
}

/** Another parser may read the request in another way. Names the field that was expected. */
export function refuseNotPlain(
  format: Format,
  reason: NotPlain,
  expected: readonly string[] = [],
): Rejection {
  const isType = reason === 'content-type' || reason === 'content-coding';
  const name = isType ? 'token-request-type' : 'token-request-not-plain';
  const { status, detail } = rejectionTable[name];
  const names = [...new Set(expected)].map((each) => `\`${each}\``).join(' or ');
  const json = format === 'json' && isType ? ['This endpoint takes JSON only.'] : [];
  const hints = names === '' ? json : [...json, `The field of the token is ${names}.`];
  const more = { reason, ...(hints.length > 0 && { hint: hints.join(' ') }) };
  return inFormat(format, name, more, [status, 'invalid_request', [detail, ...hints].join(' ')]);
}

/** Another refresh of the token is under way, or its outcome is indeterminate. */
export function refuseForNow(
  format: Format,
  { waitMs, isIndeterminate }: { readonly waitMs: number; readonly isIndeterminate: boolean },
): Rejection {
  const retryAfterSeconds = Math.max(
    1,
    isIndeterminate ? Math.ceil(waitMs / 1000) : Math.floor(waitMs / 1000),
  );
  const name = isIndeterminate ? 'refresh-token-unavailable' : 'refresh-token-busy';
  const reason = isIndeterminate ? 'indeterminate' : 'in-exchange';
  const description = 'Another exchange of this refresh token is under way.';
  return inFormat(format, name, { reason, retryAfterSeconds }, [...unavailable, description]);
}

/** The store is away: nothing is forwarded unchecked. */
export function refuseUnknown(format: Format): Rejection {
  const description = 'The state of this token cannot be checked at the moment.';
  return inFormat(format, 'token-store-unavailable', { retryAfterSeconds: 1 }, [...unavailable, description]);
}
