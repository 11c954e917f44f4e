import { accessRefusals } from '../access/refusal-rows.ts';
import { entityTagRefusals } from '../entity-tags/refusal-rows.ts';
import { rateLimitRefusals } from '../rate-limits/refusal-rows.ts';
import { refreshTokenRefusals } from '../refresh-tokens/refusal-rows.ts';
import { upstreamRefusals } from '../upstream/refusal-rows.ts';
import { resolverRefusals } from '../url-resolver/refusal-rows.ts';
import type { FieldList } from './field-list.ts';
import { outage, type RejectionRow, refusal, type WrittenRow } from './rejection-row.ts';

export type { RejectionRow } from './rejection-row.ts';

/**
 * A refusal as a value: what a decision returns instead of its result. It names a row of the table; status, code and
 * text are looked up when it is written, so that no decision knows them.
 */
export interface Rejection {
  readonly rejection: RejectionName;
  /** Why, for log, metrics and console: a stable word such as `expired`; never a value of the request. */
  readonly reason?: string;
  /** One sentence that follows the row's text, unless `rejections` replaces it; never a value of the request. */
  readonly hint?: string;
  /** Seconds for `Retry-After` (RFC 9110 section 10.2.3). */
  readonly retryAfterSeconds?: number;
  readonly challenge?: string;
  /** Further fields of the response, as a flat list, such as `Cache-Control` of a 404 that may be cached. */
  readonly fields?: FieldList;
  /** Replaces the table's row if clients expect another protocol's errors, such as those of RFC 6749 section 5.2. */
  readonly answer?: Answer;
  /** The sender, if its token is good but not sufficient. Only for counts; it is not logged. */
  readonly sender?: Sender;
}

/** The sender of a request, as a verified token names it. */
export interface Sender {
  /** The user, unique over all issuers. Any non-empty text: hash or encode it before it becomes part of a key. */
  readonly subject: string;
  /** The application that the token was issued to, if the token names one. For counts only. */
  readonly clientId?: string | undefined;
}

export function reject(rejection: RejectionName, more: Omit<Rejection, 'rejection'> = {}): Rejection {
  return { rejection, ...more };
}

export function isRejection(value: unknown): value is Rejection {
  return typeof value === 'object' && value !== null && 'rejection' in value;
}

/** A response of shopward itself that is not a refusal. */
export interface Answer {
  readonly status: number;
  /** Every field except Date and those of the connection. Content-Length is included, also for HEAD, but not with 304. */
  readonly fields: FieldList;
  /** Bytes, or US-ASCII text. Null: no content (HEAD, 304). */
  readonly body: Buffer | string | null;
}

export function isAnswer(value: unknown): value is Answer {
  return typeof value === 'object' && value !== null && 'status' in value && 'body' in value;
}

/**
 * All refusals of shopward: name -> status, code, detail. Each feature has its own in its `refusal-rows.ts`.
 *
 * Codes are the contract's and the shop's where they have one; otherwise the rejection's own name. A shop team may
 * override status, code and detail by name (`rejections` in the configuration), never the decision itself.
 */
export const rejectionTable = {
  // the request itself (RFC 9112, RFC 9110)
  'bad-request': refusal(400, 'The request is malformed.'),
  'bad-request-target': refusal(400, 'The request target is not acceptable.'),
  'bad-request-fields': refusal(400, 'The request fields are not acceptable.'),
  'bad-host': refusal(400, 'The Host field is missing, repeated or malformed.'),
  'unexpected-body': refusal(400, 'A GET or HEAD request must not have a body.'),
  'method-override': refusal(400, 'Method override is not accepted.'),
  'lenient-spelling': refusal(400, 'A request that changes this resource must use its exact path.'),
  'peer-not-trusted': refusal(403, 'Only a trusted proxy may ask for a decision.'),
  'method-not-allowed': refusal(405, 'The method is not allowed.'),
  'request-timeout': refusal(408, 'The request did not arrive in time.'),
  'payload-too-large': refusal(413, 'The request body is too large.'),
  'target-too-long': refusal(414, 'The request target is too long.'),
  'expectation-failed': refusal(417, 'The expectation cannot be met.'),
  'fields-too-large': refusal(431, 'The request fields are too large.'),
  'transfer-encoding-unsupported': refusal(501, 'Only the chunked transfer coding is supported.'),
  'http-version-unsupported': refusal(505, 'Only HTTP/1.1 and HTTP/1.0 are supported.'),
  overloaded: refusal(503, 'Too many requests are in flight.'),
  'internal-error': outage(500, 'Internal error.'),
  ...accessRefusals,
  ...entityTagRefusals,
  ...resolverRefusals,
  ...refreshTokenRefusals,
  ...upstreamRefusals,
  ...rateLimitRefusals,
} as const satisfies Record<string, WrittenRow>;

export type RejectionName = keyof typeof rejectionTable;

export const rejectionNames = Object.keys(rejectionTable) as readonly RejectionName[];

/** Whether the shop gave no usable answer: 502 or 504, unless the configuration names another status. */
export function isFailureOfShop(name: RejectionName): boolean {
  const { status } = rejectionTable[name];
  return status === 502 || status === 504;
}

export function rejectionKind(name: RejectionName): WrittenRow['kind'] {
  return rejectionTable[name].kind;
}

type RejectionOverrides = {
  readonly [Name in RejectionName]?:
    | { readonly [Part in keyof RejectionRow]?: RejectionRow[Part] | undefined }
    | undefined;
};

/** The table with a shop's overrides applied; every name has its row. */
export type Rejections = Readonly<Record<RejectionName, RejectionRow>>;

export function buildRejections(overrides: RejectionOverrides = {}): Rejections {
  return Object.fromEntries(
    rejectionNames.map((name) => {
      const { status, detail, code = name }: WrittenRow = rejectionTable[name];
      const own = overrides[name];
      return [
        name,
        { status: own?.status ?? status, code: own?.code ?? code, detail: own?.detail ?? detail },
      ];
    }),
  ) as Rejections;
}

/** Forms of an error body and their media types, the default one first. */
export const errorMediaTypes = {
  /** An error object of JSON:API, as the shop writes it. */
  jsonapi: 'application/vnd.api+json',
  /** Problem details, RFC 9457. */
  problem: 'application/problem+json',
  json: 'application/json',
} as const;

export type ErrorFormat = keyof typeof errorMediaTypes;
export const errorFormats = Object.keys(errorMediaTypes) as readonly ErrorFormat[];
