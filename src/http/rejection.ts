import type { FieldList } from './field-list.ts';

/**
 * A refusal as a value: what a decision returns instead of its result. It names a row of the table; status, code and
 * text are looked up when it is written, so that no decision knows them.
 */
export interface Rejection {
  readonly rejection: RejectionName;
  /** Why, for log, metrics and console: a stable word such as `expired`; never a value of the request. */
  readonly reason?: string;
  /** One sentence that follows the row's text; never a value of the request. */
  readonly hint?: string;
  /** Seconds for `Retry-After` (RFC 9110 section 10.2.3). */
  readonly retryAfterSeconds?: number;
  /** Value of `WWW-Authenticate` (RFC 6750 section 3). */
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
  /** Value of the claim that `rollout.clientId` names: the application that the token was issued to. For counts only. */
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
  /** Every field but Date and the connection's; Content-Length is there (for HEAD too), not with 304. */
  readonly fields: FieldList;
  /** Bytes, or US-ASCII text. Null: no content (HEAD, 304). */
  readonly body: Buffer | string | null;
}

export function isAnswer(value: unknown): value is Answer {
  return typeof value === 'object' && value !== null && 'status' in value && 'body' in value;
}

/**
 * All refusals of shopward: name -> status, code, detail.
 *
 * Codes are the contract's and the shop's where they have one; otherwise the rejection's own name. A shop team may
 * override status, code and detail by name (`rejections` in the configuration), never the decision itself.
 */
export interface RejectionRow {
  /** HTTP status. */
  readonly status: number;
  /** Application error code of the error object. */
  readonly code: string;
  /** Text for people; it never contains a part of the request. */
  readonly detail: string;
}

export const rejectionTable = {
  // the request itself (RFC 9112, RFC 9110)
  'bad-request': refusal(400, 'The request is malformed.'),
  'bad-request-target': refusal(400, 'The request target is not acceptable.'),
  'bad-request-fields': refusal(400, 'The request fields are not acceptable.'),
  'bad-host': refusal(400, 'The Host field is missing, repeated or malformed.'),
  'unexpected-body': refusal(400, 'A GET or HEAD request must not have a body.'),
  'method-override': refusal(400, 'Method override is not accepted.'),
  'lenient-spelling': refusal(400, 'A request that changes this resource must use its exact path.'),
  'resource-id-missing': refusal(400, 'Resource id is not specified.'),
  'method-not-allowed': refusal(405, 'The method is not allowed.'),
  'request-timeout': refusal(408, 'The request did not arrive in time.'),
  'payload-too-large': refusal(413, 'The request body is too large.'),
  'target-too-long': refusal(414, 'The request target is too long.'),
  'expectation-failed': refusal(417, 'The expectation cannot be met.'),
  'fields-too-large': refusal(431, 'The request fields are too large.'),
  'transfer-encoding-unsupported': refusal(501, 'Only the chunked transfer coding is supported.'),
  'http-version-unsupported': refusal(505, 'Only HTTP/1.1 and HTTP/1.0 are supported.'),
  // who asks (contract: Authentication; RFC 6750)
  'access-token-missing': refusal(401, 'Missing access token.', '002'),
  'access-token-invalid': refusal(401, 'Invalid access token.', '001'),
  'access-token-repeated': refusal(400, 'The access token must stand in one place.'),
  'cross-site-request': refusal(403, 'A change with a cookie must come from a page of this site.'),
  'insufficient-scope': refusal(403, 'The access token does not carry a required scope.'),
  'keys-unavailable': outage(503, 'Access tokens cannot be verified at the moment.'),
  // entity tags (contract: Endpoints supporting ETags; RFC 9110 section 13, RFC 6585)
  'if-match-missing': refusal(428, 'If-Match header is missing.', '005'),
  'if-match-invalid': refusal(
    412,
    'If-Match is not the current tag of this resource: fetch it again, compare, and send the new tag.',
    '006',
  ),
  'collection-write': refusal(400, 'A collection is not changed as a whole here, but member by member.'),
  'tag-store-unavailable': outage(503, 'The state of this resource cannot be checked at the moment.'),
  'resource-busy': refusal(503, 'Another change of this resource is under way.'),
  // URL resolver (contract: Resolve a SEF URL)
  'url-missing': ownAnswer(422, 'Url request parameter is missing.', '2801'),
  'url-not-found': ownAnswer(404, 'Url not found.', '2802'),
  // refresh tokens (contract: Tokens)
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
  // the upstream, and ourselves
  'upstream-unreachable': outage(502, 'The upstream cannot be reached.'),
  'upstream-invalid': outage(502, 'The upstream sent an invalid response.'),
  'upstream-timeout': outage(504, 'The upstream did not answer in time.'),
  'rate-limited': refusal(429, 'Too many requests.'),
  overloaded: refusal(503, 'Too many requests are in flight.'),
  'internal-error': outage(500, 'Internal error.'),
} as const satisfies Record<string, Row>;

export type RejectionName = keyof typeof rejectionTable;

export const rejectionNames = Object.keys(rejectionTable) as readonly RejectionName[];

/** As a row is written: without a code the rejection's own name is the code. */
interface Row {
  readonly kind: 'refusal' | 'outage' | 'answer';
  readonly status: number;
  readonly detail: string;
  readonly code?: string;
}

/** A rule or a limit turned the request away. */
function refusal(status: number, detail: string, code?: string): Row {
  return { kind: 'refusal', status, detail, ...(code !== undefined && { code }) };
}

/** Something that shopward needs is broken, and the client did nothing wrong. */
function outage(status: number, detail: string): Row {
  return { kind: 'outage', status, detail };
}

/** The honest answer of an endpoint of ours, such as "there is no such URL". */
function ownAnswer(status: number, detail: string, code: string): Row {
  return { kind: 'answer', status, detail, code };
}

/** The cause of a rejection. */
export function rejectionKind(name: RejectionName): Row['kind'] {
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
      const { status, detail, code = name }: Row = rejectionTable[name];
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
