import type { CanonicalRequest, Method } from './canonical-request.ts';
import { type FieldKind, type FieldKinds, kindOf } from './field-kinds.ts';
import { type FieldList, fieldValue, isNeverHopByHop, readNominations } from './field-list.ts';
import { type Rejection, reject } from './rejection.ts';

const none: string[] = [];

/** The fields of a request, sorted into those that are forwarded and those that are read here. */
export class FieldFacts {
  /**
   * End-to-end fields as sent: hop-by-hop, framing, override and spoofable fields are not among them. The first line is
   * kept for Host, whose value is not known yet.
   */
  endToEnd = ['Host', ''];
  host: string | undefined;
  contentLength: string | undefined;
  contentType: string | undefined;
  transferEncoding: string | undefined;
  expect: string | undefined;
  upgrade: string | undefined;
  /** Connection options, in lower case, without `close` and `keep-alive`. */
  nominated = none;
  webSocket = none;
  hasMethodOverride = false;
  /** Believed values: undefined unless the peer is trusted. Several lines are joined by a comma. */
  forwardedFor: string | undefined;
  forwardedProto: string | undefined;
  forwardedHost: string | undefined;
  requestId: string | undefined;
}

/** Field lines of a request; more is 431. */
export const maxFields = 256;

/** One pass over the field lines. Refuses too many of them, repeated single fields and nominations of end-to-end fields. */
export function readFields(
  fields: FieldList,
  kinds: FieldKinds,
  peerIsTrusted: boolean,
): FieldFacts | Rejection {
  if (fields.length > 2 * maxFields) return reject('fields-too-large', { reason: 'too-many' });
  const facts = new FieldFacts();
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] as string;
    const value = fields[i + 1] as string;
    const kind = kindOf(kinds, name);
    if (kind === 'end-to-end') facts.endToEnd.push(name, value);
    else {
      const rejection = takeField(facts, kind, name, value, peerIsTrusted);
      if (rejection !== undefined) return rejection;
    }
  }
  return facts.nominated.length === 0 ? facts : removeNominated(facts, kinds);
}

function takeField(
  facts: FieldFacts,
  kind: Exclude<FieldKind, 'end-to-end'>,
  name: string,
  value: string,
  peerIsTrusted: boolean,
): Rejection | undefined {
  switch (kind) {
    case 'dropped':
      return undefined;
    case 'single':
      if (fieldValue(facts.endToEnd, name.toLowerCase()) !== undefined) return repeated(name);
      facts.endToEnd.push(name, value);
      return undefined;
    case 'host':
      if (facts.host !== undefined) return reject('bad-host', { reason: 'repeated' });
      facts.host = value;
      return undefined;
    case 'content-type':
      if (facts.contentType !== undefined) return repeated(name);
      facts.contentType = value;
      facts.endToEnd.push(name, value);
      return undefined;
    case 'content-length':
    case 'transfer-encoding':
    case 'expect':
      if (facts[factOf[kind]] !== undefined) return repeated(name);
      facts[factOf[kind]] = value;
      return undefined;
    case 'connection':
      facts.nominated = appended(facts.nominated, readNominations(value));
      return undefined;
    case 'upgrade':
      facts.upgrade = joined(facts.upgrade, value);
      return undefined;
    case 'web-socket':
      facts.webSocket = appended(facts.webSocket, [name, value]);
      return undefined;
    case 'method-override':
      facts.hasMethodOverride = true;
      return undefined;
    case 'trusted':
      if (peerIsTrusted) facts.endToEnd.push(name, value);
      return undefined;
    default:
      if (peerIsTrusted) facts[factOf[kind]] = joined(facts[factOf[kind]], value);
      return undefined;
  }
}

const factOf = {
  'content-length': 'contentLength',
  'transfer-encoding': 'transferEncoding',
  expect: 'expect',
  'x-forwarded-for': 'forwardedFor',
  'x-forwarded-proto': 'forwardedProto',
  'x-forwarded-host': 'forwardedHost',
  'x-request-id': 'requestId',
} as const;

/**
 * Fields of a trusted peer cannot be removed by a nomination, because a client of that peer could have written it.
 * Fields that shopward sets are set again later, so nominating them changes nothing.
 */
function removeNominated(facts: FieldFacts, kinds: FieldKinds): FieldFacts | Rejection {
  // A Set: the largest head could nominate as many names as it has fields.
  const nominated = new Set(facts.nominated);
  const isRefused = (name: string) => isNeverHopByHop(name) || kindOf(kinds, name) === 'trusted';
  if ([...nominated].some(isRefused)) return reject('bad-request-fields', { reason: 'nominated-field' });
  const isKept = (name: string) => !nominated.has(name.toLowerCase());
  facts.endToEnd = facts.endToEnd.filter((_, i, all) => isKept(all[i - (i % 2)] as string));
  return facts;
}

/** Appends to the list itself, except the first time: a new list for each line would take quadratic time. */
function appended(list: string[], more: readonly string[]): string[] {
  if (list === none) return [...more];
  for (const one of more) list.push(one);
  return list;
}

function joined(before: string | undefined, value: string): string {
  return before === undefined ? value : `${before}, ${value}`;
}

function repeated(name: string): Rejection {
  return reject('bad-request-fields', { reason: `repeated-${name.toLowerCase()}` });
}

type Framing = Pick<CanonicalRequest, 'body' | 'expectsContinue'>;

/**
 * Checks the framing fields (RFC 9112 section 6) and Expect (RFC 9110 section 10.1.1). Node's parser has already refused most
 * of this, but flags of the process may make it lenient.
 *
 * A body of GET or HEAD is refused: it has no meaning (RFC 9110 section 9.3.1), and an upstream that does not expect one
 * would read it as its next request, which shopward has not checked. If the body were dropped, the request would mean
 * something else than its client said.
 */
export function readFraming(
  facts: Pick<FieldFacts, 'contentLength' | 'transferEncoding' | 'expect'>,
  method: Method,
  isHttp10: boolean,
  maxBodyBytes: number,
): Framing | Rejection {
  const { contentLength, transferEncoding, expect } = facts;
  let body: Framing['body'] = 'none';
  if (transferEncoding !== undefined) {
    if (isHttp10) return reject('bad-request-fields', { reason: 'transfer-encoding-in-http-1.0' });
    if (contentLength !== undefined) return reject('bad-request-fields', { reason: 'two-framings' });
    if (transferEncoding.toLowerCase() !== 'chunked') return reject('transfer-encoding-unsupported');
    body = 'chunked';
  } else if (contentLength !== undefined) {
    // A length that is not an exact number any more is larger than any limit, and refused as such.
    const length = /^\d+$/.test(contentLength) ? Number(contentLength) : undefined;
    if (length === undefined) return reject('bad-request-fields', { reason: 'content-length' });
    if (length > maxBodyBytes) return reject('payload-too-large');
    body = { length };
  }
  if (expect !== undefined && expect.toLowerCase() !== '100-continue') return reject('expectation-failed');
  if (body === 'none') return noBody;
  if (method === 'GET' || method === 'HEAD') {
    return body !== 'chunked' && body.length === 0 ? noBody : reject('unexpected-body');
  }
  return { body, expectsContinue: expect !== undefined && !isHttp10 };
}

const noBody: Framing = { body: 'none', expectsContinue: false };
