import { isNoneMatchMet } from '../http/entity-tag-list.ts';
import { type Answer, type Rejection, reject } from '../http/rejection.ts';
import { contentType, type Mapping, writeDocument } from './envelope.ts';
import type { LookupFailure } from './source.ts';

/** Where an answer comes from. */
export interface Provenance {
  /** Value of `Cache-Status`. */
  readonly cacheStatus: string;
  /** Seconds for which HTTP caches may keep the answer; 0 once the mapping is stale. */
  readonly maxAgeSeconds: number;
}

/** All that an answer is written from. */
interface Representation {
  readonly mapping: Mapping;
  readonly locale: string;
  /** `links.self`, escaped for a JSON string. */
  readonly self: string;
  /** Entity tag, with its quotes. */
  readonly tag: string;
  /** From `varyOf`. */
  readonly vary: string;
}

/**
 * The value of `Vary`. Host is part of every cache's key (RFC 9111 section 2); if the answer depends on Host, `Vary` names it
 * all the same, for caches that leave it out.
 */
export function varyOf(dependsOnHost: boolean): string {
  return dependsOnHost ? 'Accept-Language, Store, Host' : 'Accept-Language, Store';
}

/** Answers 200 with the envelope, or 304 when `ifNoneMatch` names its tag. */
export function answerMapping(
  representation: Representation,
  isHead: boolean,
  ifNoneMatch: string | undefined,
  provenance: Provenance,
): Answer {
  const { mapping, self, tag, locale, vary } = representation;
  const cached = ['ETag', tag, ...cacheFields(provenance, vary)];
  if (ifNoneMatch !== undefined && isNoneMatchMet([ifNoneMatch], tag)) {
    return { status: 304, fields: cached, body: null };
  }
  const body = writeDocument(mapping, self);
  return {
    status: 200,
    fields: [
      'Content-Type',
      contentType,
      'Content-Length',
      String(body.length),
      'Content-Language',
      locale,
      ...cached,
      'X-Content-Type-Options',
      'nosniff',
    ],
    body: isHead ? null : body,
  };
}

/** The contract's 404, with fields by which HTTP caches keep it as long as it is kept here. */
export function refuseUnknown(provenance: Provenance, vary: string): Rejection {
  return reject('url-not-found', {
    fields: [...cacheFields(provenance, vary), 'X-Content-Type-Options', 'nosniff'],
  });
}

function cacheFields({ cacheStatus, maxAgeSeconds }: Provenance, vary: string): string[] {
  return ['Cache-Control', `public, max-age=${maxAgeSeconds}`, 'Vary', vary, 'Cache-Status', cacheStatus];
}

/** Values of `Cache-Status` (RFC 9211). `ttl`: seconds for which the mapping is still fresh, negative once it is stale. */
export const cacheStatus = {
  hit: (ttlSeconds: number) => `shopward; hit; ttl=${ttlSeconds}`,
  /** A stale copy, while the source is asked, or after it has failed. */
  stale: (ttlSeconds: number, why: 'revalidating' | 'error') =>
    `shopward; hit; ttl=${ttlSeconds}; detail=${why}`,
  mappingFile: 'shopward; hit; detail=mapping-file',
  /** The source was asked, and its answer is kept; `collapsed`: together with another request. */
  stored: (fwd: 'miss' | 'stale', ttlSeconds: number, collapsed: boolean) =>
    `shopward; fwd=${fwd}; stored; ttl=${ttlSeconds}${collapsed ? '; collapsed' : ''}`,
  /** The source was asked; its answer is not kept. */
  notStored: (fwd: 'miss' | 'stale' | 'bypass', collapsed: boolean) =>
    `shopward; fwd=${fwd}${collapsed ? '; collapsed' : ''}`,
  /** Answered without a lookup: the value cannot be a URL of the shop. */
  unasked: 'shopward; detail=unasked',
} as const;

/** For refusals that HTTP caches must not keep: the next request may succeed. */
const notToBeKept = ['Cache-Control', 'no-store', 'X-Content-Type-Options', 'nosniff'];

/** The contract's 422: no `url`, an empty one, or an array. */
export const refuseMissing: Rejection = reject('url-missing', { fields: notToBeKept });

const refusals = {
  timeout: 'upstream-timeout',
  overloaded: 'overloaded',
  invalid: 'upstream-invalid',
  unreachable: 'upstream-unreachable',
} as const;

/** 502, 503 or 504: the source failed, and no copy may be used. Undefined: the request is to be forwarded. */
export function refuseFailure({ fault, reason }: LookupFailure): Rejection | undefined {
  if (fault === 'unrecognized') return undefined;
  const retry = fault === 'overloaded' && { retryAfterSeconds: 1 };
  return reject(refusals[fault], { reason, ...retry, fields: notToBeKept });
}
