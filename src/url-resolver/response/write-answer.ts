import { namesTag } from '../../http/if-none-match.ts';
import type { Answer } from '../../http/rejection.ts';
import { type Rejection, reject } from '../../http/rejection.ts';
import type { Mapping } from '../mapping.ts';
import { writeDocument } from './document.ts';

/** What every answer needs besides the mapping. */
export interface Provenance {
  /** Value of `Cache-Status`. */
  readonly cacheStatus: string;
  /** Seconds for which HTTP caches may keep the answer; 0 once the mapping is stale. */
  readonly maxAgeSeconds: number;
}

/** What an answer is made of besides the mapping. */
export interface Representation {
  /** Entity tag, with its quotes. */
  readonly tag: string;
  readonly locale: string;
  /** Of `links.self`, as it stands in a JSON string. */
  readonly self: string;
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
  mapping: Mapping,
  { tag, locale, self, vary }: Representation,
  isHead: boolean,
  ifNoneMatch: string | undefined,
  provenance: Provenance,
): Answer {
  const cached = ['ETag', tag, ...cacheFields(provenance, vary)];
  if (ifNoneMatch !== undefined && namesTag(ifNoneMatch, tag)) {
    return { status: 304, fields: cached, body: null };
  }
  const body = writeDocument(mapping, self);
  return {
    status: 200,
    fields: [
      'Content-Type',
      'application/vnd.api+json',
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

/** 404 of the contract, with the fields that let a cache outside keep it as long as it is kept here. */
export function refuseUnknown(provenance: Provenance, vary: string): Rejection {
  return reject('url-not-found', {
    fields: [...cacheFields(provenance, vary), 'X-Content-Type-Options', 'nosniff'],
  });
}

function cacheFields({ cacheStatus, maxAgeSeconds }: Provenance, vary: string): string[] {
  return ['Cache-Control', `public, max-age=${maxAgeSeconds}`, 'Vary', vary, 'Cache-Status', cacheStatus];
}
