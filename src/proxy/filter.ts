import type { CanonicalRequest } from '../http/canonical-request.ts';
import type { FieldList } from '../http/field-list.ts';
import type { Answer, Rejection, RejectionName, Sender } from '../http/rejection.ts';
import type { Component } from '../lib/component.ts';
import type { Eventually } from '../lib/eventually.ts';
import type { ObservedHooks } from '../upstream/hooks.ts';

export interface Identity extends Sender {
  readonly scopes: readonly string[];
  /** The claim `iss`, unchanged; undefined: the token has none. */
  readonly issuer?: string | undefined;
  /** When the token expires by its claims: milliseconds since the epoch, without the clock tolerance. */
  readonly expiresAtMs: number;
}

/**
 * The pure part of a filter: what it decides from request and configuration, without calls to others. `plan` uses it, and so
 * does all code that tells what would happen to a request.
 */
export interface Matcher<Match = unknown> {
  /** Stable name for `explain`, readiness and metrics, such as `entity-tags`. */
  readonly name: string;
  /** Template of an endpoint for log and metrics. Undefined: the filter answers no requests itself. */
  readonly route?: string;
  /**
   * Whether `run` may return hooks for the exchange with the upstream, which takes the hooks of one filter. A change that
   * two such filters match is refused; for a read only the first one runs.
   */
  readonly hooksUpstream?: boolean;
  /**
   * For an endpoint: the end of every path that `match` accepts, not counting one last slash. Other paths do not reach
   * `match`. Default: any path.
   */
  readonly pathEnd?: string;
  /** For a filter: GET and HEAD without query and body never match, so `match` is not called for them. Default: false. */
  readonly skipsPlainReads?: boolean;
  /**
   * The match that `run` gets; undefined: the filter does not apply. A rejection depends on the form of the request alone, and
   * comes before the check of the token. Pure: no clock, no store, no fields that a proxy in between may change.
   */
  match(request: CanonicalRequest): Match | Rejection | undefined;
  /** The refusal that follows from the match alone, in every mode and for every client. */
  refusal?(match: Match): Rejection | undefined;
  /**
   * For `explain`, which has a whole request: the refusal that follows from fields and body alone, without the store; or a
   * text about what `run` looks for in them.
   */
  foresee?(match: Match, request: CanonicalRequest, body: Buffer): Rejection | string | undefined;
  /** Whether `run` needs the whole body. Default: no, the body streams. */
  wantsBody?(match: Match, request: CanonicalRequest, isObserved: boolean): boolean;
  /** The match in words, for `explain`. */
  describe(match: Match, request: CanonicalRequest, name: NameRefusal): FilterDescription;
}

/** Status and code of a rejection in words, as configured. */
export type NameRefusal = (rejection: RejectionName) => string;

export interface FilterDescription {
  /** The subject of `text`, in one or two words. Default: the filter's name. */
  readonly label?: string;
  readonly text: string;
  /** Replaces `text` if no row asks for a token: the user is then unknown. */
  readonly whenOpen?: string;
  readonly details?: unknown;
}

export interface FilterContext {
  /** For filters after the access-token check: with the verified credentials in canonical spelling. */
  readonly request: CanonicalRequest;
  /** Undefined on an open route, and if observe mode forwards a request without a good token. */
  readonly identity: Identity | undefined;
  readonly body: Buffer | undefined;
  /** In observe mode a filter returns a would-be refusal as `observed`, and the request continues. A returned rejection is enforced. */
  readonly isObserved: boolean;
}

/** The request continues; undefined: the filter adds nothing. */
export type Continue =
  | ObservedHooks
  | {
      readonly bufferLimit?: never;
      /** Fields of the response, as a flat list, whether the upstream or shopward answers. */
      readonly responseFields?: FieldList;
      readonly observed?: Rejection;
    }
  | undefined;

/** The outcome for a request's credentials that are not refused. */
export type Admission =
  | {
      readonly identity: Identity;
      /** The request to forward, with the verified credentials in canonical spelling and the fields of `auth.forward`. */
      readonly request: CanonicalRequest;
      /** The condition of an observing row that is not met. */
      readonly observed?: Rejection;
    }
  /** The row says `credentials: shop`, and the request has credentials for the shop to check. */
  | 'unjudged';

/** A feature that takes part in the decision on a request: one folder, and one line in `src/app/filters.ts`. */
export interface Filter<Match = unknown> extends Matcher<Match>, Component {
  /**
   * Effects. Must not throw because of a client's request: an exception is 500. If an endpoint returns undefined, the request
   * goes on to the list, the other filters and the upstream.
   */
  run(match: Match, context: FilterContext): Eventually<Continue | Answer | Rejection>;
}
