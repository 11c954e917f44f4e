import { hash, randomUUID } from 'node:crypto';
import type { CanonicalRequest } from '../http/canonical-request.ts';
import { fieldValues, trimEndWhile } from '../http/field-list.ts';
import { normaliseLinearly } from '../http/path-folding.ts';
import type { ResourceKey } from './tag-store.ts';

/** One record for all users and all spellings of an id. */
export function memberKey(template: string, ids: readonly string[]): ResourceKey {
  return digest(['member', template.toLowerCase(), ...ids.map(foldId)]);
}

/** One record per subject: what a collection holds depends on who asks. */
export function collectionKey(template: string, ids: readonly string[], subject: string): ResourceKey {
  return digest(['collection', template.toLowerCase(), ...ids.map(foldId), subject]);
}

/**
 * Folds the spellings that a database's collation or the shop's router takes for one id: case, accents, `;params`,
 * spaces and dots at the end; of a whole number spaces, `+` and zeros at the front, and `.0` at the end. Two spellings
 * must not mean two leases; two ids under one lease only wait for one another. Exported for its tests.
 */
export function foldId(id: string): string {
  if (folded.test(id)) return id;
  const [name = ''] = normaliseLinearly(id, 'NFKD')
    .replace(/\p{Mn}+/gu, '')
    .toLowerCase()
    .split(';', 1);
  const text = trimEndWhile(name, isIgnoredAtTheEnd);
  const [, digits] = wholeNumber.exec(text.trimStart()) ?? [];
  return digits === undefined ? text : digits.replace(/^0+(?=\d)/, '');
}

function isIgnoredAtTheEnd(code: number): boolean {
  return code === 0 || code === 0x2e || /\s/.test(String.fromCharCode(code));
}

/** As a database casts it. Not `1e0`, `0x1` or `1abc`, which some cast as well: they stay ids of their own. */
const wholeNumber = /^\+?(\d+)(?:\.0*)?$/;

/** What most ids are, and none of the steps of `foldId` changes. */
const folded = /^(?:0|[1-9]\d*|[a-z_-][a-z\d_-]*)$/;

/** Hexadecimal, so that nothing of an id can mean anything in a key. Exported for its tests. */
export function digest(parts: readonly string[]): ResourceKey {
  return hash('sha256', lengthPrefixed(parts), 'hex').slice(0, 48) as ResourceKey;
}

/** Lengths before the parts: no part can pretend to be two. */
function lengthPrefixed(parts: readonly string[]): string {
  let text = '';
  for (const part of parts) text += `${part.length}:${part}`;
  return text;
}

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

/** A new opaque tag: 32 hexadecimal digits of which 122 bits are random; no character that anyone rewrites. */
export function randomTag(): string {
  const id = randomUUID();
  return id.slice(0, 8) + id.slice(9, 13) + id.slice(14, 18) + id.slice(19, 23) + id.slice(24);
}
