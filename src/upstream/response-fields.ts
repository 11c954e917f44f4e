import type { CanonicalRequest } from '../http/canonical-request.ts';
import { type FieldList, hopByHopNames, trimOws } from '../http/field-list.ts';
import type { PublicReferences } from './public-references.ts';
import { token, valueText } from './request-framing.ts';

/**
 * Fields of an upstream's response as they may be sent on: without hop-by-hop fields, what `Connection` names, trailer
 * announcements and framing other than Content-Length (RFC 9110 section 7.6.1), without the upstream's `Server` and
 * `X-Debug*`, and without any line that could not be written. Order, spelling and repeats are kept. With `references` what
 * names the shop's own address names the public one.
 */
export function endToEndFields(
  fields: FieldList,
  status: number,
  references?: PublicReferences,
  request?: CanonicalRequest,
): string[] {
  const named = namedByConnection(fields);
  const kept: string[] = [];
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const name = fields[i] as string;
    const value = fields[i + 1] as string;
    if (named === undefined && ordinary.has(name)) {
      if (valueText.test(value)) kept.push(name, value);
      continue;
    }
    const lower = name.toLowerCase();
    if (isHopByHop(lower)) continue;
    // RFC 9110 section 8.6: 1xx and 204 have no Content-Length.
    if ((status === 204 || status < 200) && lower === 'content-length') continue;
    if (named?.has(lower) && !unnameable.has(lower)) continue;
    if (!token.test(name) || !valueText.test(value)) continue;
    const isRewritten = references !== undefined && request !== undefined && referenceNames.has(lower);
    kept.push(name, isRewritten ? references.toPublic(value, request) : value);
  }
  return kept;
}

const referenceNames = new Set(['location', 'content-location']);

/** Whether a field stays between the upstream and us, whatever `Connection` says. */
function isHopByHop(lowerCaseName: string): boolean {
  return (
    dropped.has(lowerCaseName) || lowerCaseName.startsWith('proxy-') || lowerCaseName.startsWith('x-debug')
  );
}

const dropped = new Set([...hopByHopNames, 'server']);

/** Fields that most responses have and that always pass, as they are mostly spelled: they need no second look. */
const ordinary = new Set([
  'Accept-Ranges',
  'Access-Control-Allow-Origin',
  'Cache-Control',
  'Content-Type',
  'Date',
  'ETag',
  'Expires',
  'Last-Modified',
  'Set-Cookie',
  'Vary',
]);

/** What `Connection` has no say in: without these a client would misread, keep or trust the response wrongly. */
const unnameable = new Set([
  'cache-control',
  'content-encoding',
  'content-length',
  'content-type',
  'etag',
  'set-cookie',
  'vary',
  'www-authenticate',
]);

function namedByConnection(fields: FieldList): Set<string> | undefined {
  let named: Set<string> | undefined;
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const name = fields[i] as string;
    if (name.length !== 10 || name.toLowerCase() !== 'connection') continue;
    const value = (fields[i + 1] as string).toLowerCase();
    if (value === 'keep-alive' || value === 'close') continue;
    named ??= new Set();
    for (const one of value.split(',')) named.add(trimOws(one));
  }
  return named;
}

/** The upstream's reason phrase, or undefined when it may not stand in a status line (RFC 9112 section 4). */
export function reasonPhrase(reason: string): string | undefined {
  return valueText.test(reason) ? reason : undefined;
}
