import { hash } from 'node:crypto';
import type { CanonicalRequest } from '../request/canonical-request.ts';
import { fieldValues } from '../request/field-list.ts';
import { lengthPrefixed } from './resource-key.ts';

export type Identity = { readonly subject?: string | undefined } | undefined;

/** What the shop's choice among representations may depend on (RFC 9110 section 12.5); the shop versions by Content-Type. */
const negotiatedFields = ['accept', 'accept-language', 'content-type', 'store', 'x-agent-authorization'];
/** What a variant tells apart, beside the target and Host: a `Vary` of these alone needs no further look. */
const toldApart = new Set([...negotiatedFields, 'accept-encoding', 'authorization', 'host']);
/** Who asks, where no verified token says so. */
const anonymousFields = ['x-anonymous-customer-unique-id', 'authorization', 'cookie'];
const codings = ['gzip', 'br', 'zstd', 'deflate'];

/** Who asks, for keys of collections and variants: the verified subject, else a digest of what may tell users apart. */
export function subjectOf(request: Pick<CanonicalRequest, 'fields'>, identity: Identity): string {
  const subject = identity?.subject;
  if (subject !== undefined) return `subject ${subject}`;
  const values = anonymousFields.flatMap((name) => fieldValues(request.fields, name));
  return values.length === 0 ? 'nobody' : `unverified ${shortHash(anonymousParts(request))}`;
}

function anonymousParts(request: Pick<CanonicalRequest, 'fields'>): string[] {
  return anonymousFields.map((name) => lengthPrefixed(fieldValues(request.fields, name)));
}

/**
 * The name under which a fingerprint is kept: equal requests of one subject have equal ones. A digest, so that neither
 * a token nor an id reaches a key. `kind` keeps answers to different methods apart.
 */
export function variantOf(
  request: Pick<CanonicalRequest, 'fields' | 'host' | 'path' | 'query'>,
  subject: string,
  kind: 'read' | 'created',
): string {
  const parts = [kind, request.path, request.query, subject, request.host, acceptedCodings(request)];
  for (const name of negotiatedFields) parts.push(lengthPrefixed(fieldValues(request.fields, name)));
  return shortHash(parts);
}

/** Whether the variant of a verified subject tells apart all that `Vary` says the answer depends on. */
export function coversVary(lines: readonly string[]): boolean {
  const names = lines.join(',').toLowerCase().split(',');
  return names.map((name) => name.trim()).every((name) => name === '' || toldApart.has(name));
}

/** Fingerprints are of decoded octets, so which codings are accepted is enough, in whatever words. */
function acceptedCodings(request: Pick<CanonicalRequest, 'fields'>): string {
  const accepted = fieldValues(request.fields, 'accept-encoding').join().toLowerCase();
  return codings.map((coding) => (accepted.includes(coding) ? '1' : '0')).join('');
}

/** 132 bits. */
function shortHash(parts: readonly string[]): string {
  return hash('sha256', lengthPrefixed(parts), 'base64url').slice(0, 22);
}
