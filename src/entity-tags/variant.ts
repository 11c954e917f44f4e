import { hash } from 'node:crypto';
import type { CanonicalRequest } from '../http/canonical-request.ts';
import { fieldValues } from '../http/field-list.ts';
import { lengthPrefixed } from './resource-key.ts';

export type Identity = { readonly subject?: string | undefined } | undefined;

/** What the shop's choice among representations may depend on (RFC 9110 section 12.5); the shop versions by Content-Type. */
const negotiatedFields = ['accept', 'accept-language', 'content-type', 'store', 'x-agent-authorization'];
/** What a variant tells apart, beside the target and Host: a `Vary` of these alone needs no further look. */
const toldApart = new Set([...negotiatedFields, 'accept-encoding', 'authorization', 'host']);
/** Who asks, where no verified token says so. */
const anonymousFields = ['x-anonymous-customer-unique-id', 'authorization', 'cookie'];
/** Names in one `Vary` that the variant follows; a shop that names more has them told apart by the first ones. */
const maxVaryNames = 16;
/** What changes from request to request says nothing of the representation: each would be a variant of its own. */
const notFollowed = new Set(['*', 'cookie', '']);
const codings = ['gzip', 'br', 'zstd', 'deflate'];

/** Who asks, for keys of collections and variants: the verified subject, else a digest of what may tell users apart. */
export function subjectOf(request: Pick<CanonicalRequest, 'fields'>, identity: Identity): string {
  const subject = identity?.subject;
  if (subject !== undefined) return `subject ${subject}`;
  const values = anonymousFields.flatMap((name) => fieldValues(request.fields, name));
  return values.length === 0 ? 'nobody' : `unverified ${shortHash(anonymousParts(request))}`;
}

/** Nobody has verified who asks, so that anybody may ask as anybody, as often as they like. */
export function isStranger(identity: Identity): boolean {
  return identity?.subject === undefined;
}

function anonymousParts(request: Pick<CanonicalRequest, 'fields'>): string[] {
  return anonymousFields.map((name) => lengthPrefixed(fieldValues(request.fields, name)));
}

/**
 * The name under which a fingerprint is kept: equal requests of one subject have equal ones. A digest, so that neither
 * a token nor an id reaches a key. `kind` keeps answers to different methods apart, `alsoBy` are the names of `varyNames`.
 */
export function variantOf(
  request: Pick<CanonicalRequest, 'fields' | 'host' | 'path' | 'query'>,
  subject: string,
  kind: 'read' | 'created',
  alsoBy: readonly string[] = [],
): string {
  const parts = [kind, request.path, request.query, subject, request.host, acceptedCodings(request)];
  for (const name of negotiatedFields) parts.push(lengthPrefixed(fieldValues(request.fields, name)));
  for (const name of alsoBy) parts.push(name, lengthPrefixed(fieldValues(request.fields, name)));
  return shortHash(parts);
}

/** What the answer depends on beyond that (RFC 9110 section 12.5.5), by the shop's own word; mostly nothing. */
export function varyNames(lines: readonly string[]): readonly string[] {
  if (lines.length === 0) return [];
  const names = new Set(namesIn(lines).filter((name) => !toldApart.has(name) && !notFollowed.has(name)));
  return [...names].sort().slice(0, maxVaryNames);
}

/** Whether the variant of a verified subject tells apart all that `Vary` says the answer depends on. */
export function coversVary(lines: readonly string[]): boolean {
  return namesIn(lines).every((name) => name === '' || toldApart.has(name));
}

function namesIn(lines: readonly string[]): string[] {
  const names = lines.join(',').toLowerCase().split(',');
  return names.map((name) => name.trim());
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
