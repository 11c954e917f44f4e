import type { CanonicalRequest } from '../http/canonical-request.ts';
import type { FieldList } from '../http/field-list.ts';
import type { Answer, Rejection, RejectionName } from '../http/rejection.ts';
import type { Component } from '../lib/component.ts';
import type { Eventually } from '../lib/eventually.ts';
import type { UpstreamHooks } from '../upstream/hooks.ts';

/** Whom a verified access token names. */
export interface Identity {
  readonly subject: string;
  /** What the claim of `rollout.clientId` names: the application, for counts alone. */
  readonly clientId?: string | undefined;
  readonly scopes: readonly string[];
  /** Who says so; undefined: the token does not tell. */
  readonly issuer?: string | undefined;
  /** Milliseconds since the epoch. */
  readonly expiresAtMs: number;
}

/**
 * What a filter decides without asking anybody: the pure half, made of the configuration alone. `plan` goes by it, and so
 * does everything that tells what would happen to a request.
 */
export interface Matcher<Match = unknown> {
  /** Stable, for `explain`, readiness and metrics: `entity-tags`, say. */
  readonly name: string;
  /** Template of an endpoint for log and metrics; what answers no request by itself has none. */
  readonly route?: string;
  /**
   * Whether `run` may hand hooks to the exchange with the upstream, which has room for one filter's. A change that two
   * such filters match is refused; of a read the first one is asked.
   */
  readonly hooksUpstream?: boolean;
  /**
   * What the request is to this filter; undefined: nothing. A rejection is for its form alone, and given before anybody
   * is asked for a token. Pure: no clock, no store, no fields that a proxy in between may change.
   */
  match(request: CanonicalRequest): Match | Rejection | undefined;
  /** What `run` refuses in any mode and whoever asks, where the match alone says so. */
  refusal?(match: Match): Rejection | undefined;
  /**
   * What `run` refuses by fields and body alone, whatever the store says; or, in words, what it looks for in them. For
   * `explain`, which has a whole request before it.
   */
  foresee?(match: Match, request: CanonicalRequest, body: Buffer): Rejection | string | undefined;
  /** Whether the whole body must have been read before `run`. Default: no, it streams. */
  wantsBody?(match: Match, request: CanonicalRequest, isObserved: boolean): boolean;
  /** The match in words, for `explain`. */
  describe(match: Match, request: CanonicalRequest, name: NameRefusal): FilterDescription;
}

/** Status and code of a rejection as this proxy is configured, in words. */
export type NameRefusal = (rejection: RejectionName) => string;

export interface FilterDescription {
  /** What `text` is about, in a word or two for people; default: the filter's name. */
  readonly label?: string;
  /** One line. */
  readonly text: string;
  /** In place of `text` where no row asks for a token, and so nobody is known to be the user. */
  readonly whenOpen?: string;
  /** The same for programs. */
  readonly details?: unknown;
}

/** What a filter is given beside its match. */
export interface FilterContext {
  /** After the access token's filter: with the verified credentials in their canonical spelling. */
  readonly request: CanonicalRequest;
  /** Undefined on an open route, and where observe mode let somebody unknown pass. */
  readonly identity: Identity | undefined;
  /** Whole where `wantsBody` said so. */
  readonly body: Buffer | undefined;
  /** Observe mode: what would be refused goes on, and is given as `observed`. A refusal that is returned holds. */
  readonly isObserved: boolean;
}

/** The request goes on; undefined: without anything to add. */
export type Continue =
  | (UpstreamHooks & { readonly observed?: Rejection })
  | {
      readonly bufferLimit?: never;
      /** Whom the request's token names. */
      readonly identity?: Identity;
      /** The request as it goes on: with the credentials that were verified, and no others. */
      readonly request?: CanonicalRequest;
      /** Fields of the response, flat, whoever answers. */
      readonly responseFields?: FieldList;
      /** What observe mode let pass. */
      readonly observed?: Rejection;
    }
  | undefined;

/** A feature that has a say in requests. One folder, one line in `src/app/filters.ts`. */
export interface Filter<Match = unknown> extends Matcher<Match>, Component {
  readonly name: string;
  /**
   * Effects. Must not throw for what a client sent: whatever is thrown is 500. An endpoint that gives nothing hands the
   * request on to the list, the other filters and the upstream.
   */
  run(match: Match, context: FilterContext): Eventually<Continue | Answer | Rejection>;
}
