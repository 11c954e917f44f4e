import { isNoneMatchMet } from '../http/entity-tag-list.ts';
import { type Answer, type Rejection, reject } from '../http/rejection.ts';
import type { DocumentContext, Envelope, Mapping } from './envelope.ts';
import type { LookupFailure } from './source.ts';

/** What every answer needs besides the mapping. */
export interface Provenance {
  /** Value of `Cache-Status`. */
  readonly cacheStatus: string;
  /** Seconds for which HTTP caches may keep the answer; 0 once the mapping is stale. */
  readonly maxAgeSeconds: number;
}

/** What an answer is made of. */
interface Representation extends DocumentContext {
  readonly mapping: Mapping;
  readonly envelope: Envelope;
  /** Entity tag, with its quotes. */
  readonly tag: string;
  /** From `varyOf`. */
  readonly vary: string;
}

/**
 * Value of `Vary`. Host is part of what every cache keys by (RFC 9111 section 2); it is named where it has a say in the answer,
 * for those that leave it out.
 */
export function varyOf(dependsOnHost: boolean): string {
  return dependsOnHost ? 'Accept-Language, Store, Host' : 'Accept-Language, Store';
}

/** 200 with the envelope, 304 when `ifNoneMatch` names it; a HEAD has no body but the fields of the GET. */
export function answerMapping(
  representation: Representation,
  isHead: boolean,
  ifNoneMatch: string | undefined,
  provenance: Provenance,
): Answer {
  const { mapping, envelope, tag, locale, vary } = representation;
  const cached = ['ETag', tag, ...cacheFields(provenance, vary)];
  if (isNamed(ifNoneMatch, tag)) {
    return { status: 304, fields: cached, body: null };
  }
  const body = envelope.write(mapping, representation);
  return {
    status: 200,
    fields: [
      'Content-Type',
      envelope.contentType,
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

/** Nearly every one who asks names the one tag that he was given. */
function isNamed(ifNoneMatch: string | undefined, tag: string): boolean {
  return ifNoneMatch !== undefined && (ifNoneMatch === tag || isNoneMatchMet([ifNoneMatch], tag));
}

/** 404 of the contract, with the fields that let a cache outside keep it as long as it is kept here. */
export function refuseUnknown(provenance: Provenance, vary: string): Rejection {
  return reject('url-not-found', {
    fields: [...cacheFields(provenance, vary), 'X-Content-Type-Options', 'nosniff'],
  });
}

function cacheFields({ cacheStatus, maxAgeSeconds }: Provenance, vary: string): string[] {
  return ['Cache-Control', `public, max-age=${maxAgeSeconds}`, 'Vary', vary, 'Cache-Status', cacheStatus];
}

/**
 * Values of `Cache-Status` (RFC 9211). `hit` without more: given from what this process holds. `ttl` is what is left of
 * the mapping's freshness, in seconds, negative once it is stale.
 */
export const cacheStatus = {
  hit: (ttlSeconds: number) => `shopward; hit; ttl=${ttlSeconds}`,
  /** From the copy that replicas share. */
  shared: (ttlSeconds: number) => `shopward; hit; ttl=${ttlSeconds}; detail=shared`,
  /** A stale copy, while the source is asked or cannot be. */
  stale: (ttlSeconds: number, why: 'revalidating' | 'error') =>
    `shopward; hit; ttl=${ttlSeconds}; detail=${why}`,
  mappingFile: 'shopward; hit; detail=mapping-file',
  /** The source was asked, and its answer kept; `collapsed`: the look-up was under way for another request. */
  stored: (fwd: 'miss' | 'stale', ttlSeconds: number, collapsed: boolean) =>
    `shopward; fwd=${fwd}; stored; ttl=${ttlSeconds}${collapsed ? '; collapsed' : ''}`,
  /** The source was asked; its answer is not kept. */
  notStored: (fwd: 'miss' | 'stale' | 'bypass', collapsed: boolean) =>
    `shopward; fwd=${fwd}${collapsed ? '; collapsed' : ''}`,
  /** Answered without asking anybody: the value cannot be a URL of the shop. */
  unasked: 'shopward; detail=unasked',
} as const;

/** A refusal that no cache outside may keep: the next request may fare better. */
const notToBeKept = ['Cache-Control', 'no-store', 'X-Content-Type-Options', 'nosniff'];

/** 422 of the contract: no `url`, an empty one, or an array. */
export const refuseMissing: Rejection = reject('url-missing', { fields: notToBeKept });

/** 502, 503 or 504: the source failed and there is no copy that may be given out. Undefined: it is the shop's to answer. */
export function refuseFailure(failure: LookupFailure): Rejection | undefined {
  const { reason } = failure;
  switch (failure.fault) {
    case 'unrecognized':
      return undefined;
    case 'timeout':
      return reject('upstream-timeout', { reason, fields: notToBeKept });
    case 'overloaded':
      return reject('overloaded', { reason, retryAfterSeconds: 1, fields: notToBeKept });
    case 'invalid':
      return reject('upstream-invalid', { reason, fields: notToBeKept });
    case 'unreachable':
      return reject('upstream-unreachable', { reason, fields: notToBeKept });
  }
}
