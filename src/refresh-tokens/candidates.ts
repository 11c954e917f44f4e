import type { CanonicalRequest } from '../request/canonical-request.ts';
import { decodeContent, readTexts } from './decoded-text.ts';
import { findNamedValues, foldName } from './named-values.ts';
import type { TokenEndpoint } from './token-endpoints.ts';

/**
 * Octets that are looked into, of body and query together, as sent and behind each content coding. An exchange has a few KiB; looking takes the whole
 * process some 200 ns an octet, and a few KiB on the wire may stand for millions.
 */
const readableBytes = 65_536;

const grantTypeNames = new Set([foldName('grant_type')]);

/**
 * Every refresh token that the shop could read in the request, whatever format it takes the body for. `ambiguous`: more
 * than anybody sends, or hidden too deep to be looked for; nobody but an attacker does that.
 */
export function findCandidates(
  request: Pick<CanonicalRequest, 'fields' | 'query'>,
  body: Buffer,
  endpoints: readonly TokenEndpoint[],
): readonly string[] | 'ambiguous' {
  if (body.length + request.query.length > readableBytes) return 'ambiguous';
  const octets = decodeContent(body, request.fields, readableBytes);
  if (octets === 'too-long') return 'ambiguous';
  // A coding that we cannot undo is one that the shop may not know either: it judges.
  const texts = octets === 'unreadable' ? [] : [...readTexts(octets)];
  if (request.query.length > 1) texts.push(request.query.slice(1));
  const names = new Set(endpoints.map(({ fields }) => foldName(fields.refreshToken)));
  const found = new Set<string>();
  for (const text of texts) {
    const values = findNamedValues(text, names);
    if (values === null) return 'ambiguous';
    for (const value of values) found.add(value);
  }
  const isForm = endpoints.every(({ format }) => format === 'form');
  return found.size > 0 && isForm && hasAnotherGrant(texts) ? [] : [...found];
}

/** RFC 6749 section 4: a grant is named, and in no reading it is that of section 6. */
function hasAnotherGrant(texts: readonly string[]): boolean {
  const grants: string[] = [];
  for (const text of texts) {
    const values = findNamedValues(text, grantTypeNames);
    if (values === null) return false;
    grants.push(...values);
  }
  return grants.length > 0 && !grants.some((grant) => foldName(grant).includes('refreshtoken'));
}
