import type { FieldList } from './field-list.ts';
import type { RejectionName } from './rejection-table.ts';

/**
 * A refusal as a value: what a decision returns instead of its result. It names a row of the table; status, code and
 * text are looked up when it is written, so that no decision knows them.
 */
export interface Rejection {
  readonly rejection: RejectionName;
  /** Why, for log, metrics and console: a stable word such as `expired`; never a value of the request. */
  readonly reason?: string;
  /** Seconds for `Retry-After` (RFC 9110 section 10.2.3). */
  readonly retryAfterSeconds?: number;
  /** Value of `WWW-Authenticate` (RFC 6750 section 3). */
  readonly challenge?: string;
  /** Further fields of the response, flat (`Cache-Control` of a 404 that may be kept, say). */
  readonly fields?: FieldList;
  /** Spoken instead of the table's row where clients expect another protocol's errors (RFC 6749 section 5.2, say). */
  readonly answer?: SpokenAnswer;
}

/** A whole response but for the fields that every refusal may have; the shape of `Answer`. */
export interface SpokenAnswer {
  readonly status: number;
  readonly fields: FieldList;
  readonly body: Buffer | string | null;
}

export function reject(rejection: RejectionName, more: Omit<Rejection, 'rejection'> = {}): Rejection {
  return { rejection, ...more };
}

export function isRejection(value: unknown): value is Rejection {
  return typeof value === 'object' && value !== null && 'rejection' in value;
}
